# Reference values for point patterns, by spatstat. Stored in crates/ebp/tests/patterns.rs and quoted in
# docs/patterns.md.
#
#   Rscript tools/reference/point_patterns.R FOLDER            fits and summaries (seconds)
#   Rscript tools/reference/point_patterns.R FOLDER LAW   1,000 patterns of a law: rStrauss, rHardcore, strauss,
#                                                         geyer or areaint
#
# FOLDER holds Ripley's files cells.dat, redwood.dat and pines.dat. Made with R 4.2.2, spatstat.geom 3.0-6,
# spatstat.random 3.1-3, spatstat.explore 3.0-6, spatstat.model 3.2-1 (Debian 12).

suppressMessages({
  library(spatstat.geom); library(spatstat.random); library(spatstat.explore); library(spatstat.model)
})
options(digits = 10)
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
cat(R.version.string, "\n")
for (package in c("geom", "random", "explore", "model"))
  cat("spatstat.", package, " ", as.character(packageVersion(paste0("spatstat.", package))), "\n", sep = "")

read_pattern <- function(name) {
  lines <- readLines(file.path(folder, paste0(name, ".dat")))
  bounds <- scan(text = lines[3], quiet = TRUE)
  numbers <- scan(text = lines[-(1:3)], quiet = TRUE) / bounds[5]
  window <- owin(bounds[1:2] / bounds[5], bounds[3:4] / bounds[5])
  ppp(numbers[c(TRUE, FALSE)], numbers[c(FALSE, TRUE)], window = window)
}
cells <- read_pattern("cells")
redwood <- read_pattern("redwood")
pines <- read_pattern("pines")

say <- function(name, fit) {
  cat(sprintf("%-34s", name), format(coef(fit), digits = 10), " log PL",
      format(as.numeric(suppressWarnings(logLik(fit))), digits = 10), "\n")
  errors <- tryCatch(sqrt(diag(vcov(fit))), error = function(e) NA)
  cat(sprintf("%-34s", "  standard errors"), format(errors, digits = 6), "\n")
}
fits <- function() {
cat("\nMaximum pseudolikelihood, default quadrature, border correction\n")
say("cells poisson", ppm(cells ~ 1))
say("cells poisson x + y", ppm(cells ~ x + y))
say("cells strauss 0.1", ppm(cells ~ 1, Strauss(0.1)))
say("cells strauss 0.1, x + y", ppm(cells ~ x + y, Strauss(0.1)))
say("cells hardcore 0.08", ppm(cells ~ 1, Hardcore(0.08)))
say("cells straushard 0.12 0.08", ppm(cells ~ 1, StraussHard(0.12, 0.08)))
say("cells geyer 0.12 2", ppm(cells ~ 1, Geyer(0.12, 2)))
say("redwood strauss 0.08", ppm(redwood ~ 1, Strauss(0.08)))
say("redwood geyer 0.05 2", ppm(redwood ~ 1, Geyer(0.05, 2)))
say("redwood area 0.05", ppm(redwood ~ 1, AreaInter(0.05)))
say("cells area 0.06", ppm(cells ~ 1, AreaInter(0.06)))
say("pines strauss 0.7", ppm(pines ~ 1, Strauss(0.7)))
say("pines geyer 0.7 1", ppm(pines ~ 1, Geyer(0.7, 1)))

cat("\nLogistic regression, the 32 x 32 middles of cells as dummy points, border correction\n")
logistic <- function(pattern, interaction) {
  middles <- gridcentres(Window(pattern), 32, 32)
  scheme <- quadscheme.logi(pattern, ppp(middles$x, middles$y, window = Window(pattern)))
  ppm(scheme, ~1, interaction, method = "logi")
}
say("cells strauss 0.1", logistic(cells, Strauss(0.1)))
say("redwood geyer 0.05 2", logistic(redwood, Geyer(0.05, 2)))

cat("\nSummary functions\n")
summaries <- function(name, pattern, at) {
  grid <- seq(0, max(at), length.out = 1001)
  pick <- function(f, column) format(as.function(f, value = column)(at), digits = 8)
  K <- Kest(pattern, r = grid, correction = c("translate", "isotropic", "border"))
  cat(name, "r", at, "\n  K translation", pick(K, "trans"), "\n  K isotropic  ", pick(K, "iso"),
      "\n  K border     ", pick(K, "border"), "\n")
  G <- Gest(pattern, r = grid)
  cat("  G border     ", pick(G, "rs"), "\n  G Kaplan-Meier", pick(G, "km"), "\n")
  F <- Fest(pattern, r = grid, eps = diff(Window(pattern)$xrange) / 400)
  cat("  F border     ", pick(F, "rs"), "\n  F Kaplan-Meier", pick(F, "km"), "\n")
  g <- pcf(pattern, r = grid, correction = "translate", kernel = "epanechnikov", divisor = "r")
  cat("  g translation", pick(g, "trans"), " bandwidth", attr(g, "bw"), "\n")
}
# Distances that no pair of these rounded coordinates has.
summaries("cells", cells, c(0.0537, 0.1037, 0.1537))
summaries("redwood", redwood, c(0.0537, 0.1037, 0.1537))
summaries("pines", pines, c(0.537, 1.037, 1.537))

}
if (is.na(arguments[2])) fits() else {
cat("\nSimulation, 1,000 patterns in the unit square, free boundary: mean (standard error)\n")
square <- owin(c(0, 1), c(0, 1))
simulated <- function(name, draw, at = c(0.05, 0.1)) {
  set.seed(1)
  found <- sapply(1:1000, function(i) {
    pattern <- draw()
    K <- Kest(pattern, r = seq(0, max(at), length.out = 201), correction = "translate")
    c(npoints(pattern), as.function(K, value = "trans")(at))
  })
  cat(sprintf("%-30s", name), "count, K(", at, "):",
      sprintf("%.6f (%.6f)", rowMeans(found), apply(found, 1, sd) / sqrt(ncol(found))), "\n")
}
chain <- function(model) function() rmh(rmhmodel(model), start = list(n.start = 60),
  control = list(nrep = 2e5, expand = 1, p = 0.5), verbose = FALSE)
laws <- list(
  rStrauss = function() rStrauss(100, 0.3, 0.07, square, expand = FALSE),
  rHardcore = function() rHardcore(100, 0.05, square, expand = FALSE),
  strauss = chain(list(cif = "strauss", par = list(beta = 100, gamma = 0.3, r = 0.07), w = square)),
  geyer = chain(list(cif = "geyer", par = list(beta = 40, gamma = 1.5, r = 0.05, sat = 2), w = square)),
  areaint = chain(list(cif = "areaint", par = list(beta = 40, eta = 5, r = 0.05), w = square)))
simulated(arguments[2], laws[[arguments[2]]])
}
