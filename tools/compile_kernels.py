#!/usr/bin/env python3
"""Compiles every CUDA source of the crate by NVRTC, on a machine that needs no GPU.

    python3 tools/compile_kernels.py --nvrtc PATH/libnvrtc.so.12 [--architectures 75,80,90]

Sources are put together as the Rust code does it at run time: the lists behind `kernels!` are read from
the crate, common.cu stands before each, and what the crate defines for a kernel of one shape is defined
here for several shapes. Each is compiled to PTX with the options of `point/cuda/launch.rs`, and then to
machine code for its registers and spills; the driver that compiles the PTX on a user's machine may choose
a few registers more or less. The exit code is 1 if a source does not compile, is in no list, or lacks a
kernel that the crate loads.
"""

import argparse
import ctypes
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "crates" / "ebp" / "src"
# The least architecture of a list; others do without its kernels (`fused::find`).
LEAST_ARCHITECTURE = {"fused.cu": 80}
# Networks for whose widths fused.cu is compiled: hidden widths, numbers of an element, those that move.
FUSED_SHAPES = [(128, 64, 3, 3), (128, 128, 3, 2)]
FUSED_NAMES = ["H1", "H2", "D", "DX", "SPLIT", "HALF", "LEAPFROG", "MT", "WARPS", "KIND", "LEAK"]
# (KIND, LEAK) of `network::activation_code`: a rectifier, one with a leak, SiLU, softplus, tanh.
ACTIVATIONS = [(1, "0e0f"), (1, "1e-2f"), (2, "0e0f"), (3, "0e0f"), (4, "0e0f")]
# Coordinates of a point for which distances.cu is compiled.
DIMENSIONS = [1, 2, 3, 16]


def main():
    arguments = parse_arguments()
    nvrtc = Nvrtc(arguments.nvrtc)
    print(f"NVRTC {nvrtc.version}")
    tables = kernel_tables()
    failures = unlisted(tables)
    for architecture in arguments.architectures:
        for table in tables:
            failures += compile_table(nvrtc, table, architecture, arguments.verbose)
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nvrtc", required=True, metavar="PATH",
                        help="the library libnvrtc.so, of a toolkit or of the wheel "
                             "nvidia-cuda-nvrtc-cu12")
    parser.add_argument("--architectures", type=architectures, default="75,80,90", metavar="LIST",
                        help="compute capabilities without their dot (default: 75,80,90)")
    parser.add_argument("--verbose", action="store_true", help="a line for every kernel")
    return parser.parse_args()


def architectures(text):
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError("numbers such as 75,80,90 are expected") from None


def kernel_tables():
    """Every `kernels!` of the crate: its .cu files in their order, and the kernels it loads."""
    tables = []
    for path in sorted(SOURCES.rglob("*.rs")):
        lines = path.read_text().splitlines()
        code = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
        for found in re.finditer(r"struct \w+ from \[(.*?)\];(.*?)\n\}", code, re.DOTALL):
            files = [path.parent / name
                     for name in re.findall(r'include_str!\("(.*?)"\)', found.group(1))]
            # Tests have a source of their own in a string.
            if files:
                tables.append((files, re.findall(r"\bfn (\w+)\(", found.group(2))))
    return tables


def common():
    """What `launch::COMMON` includes."""
    launch = SOURCES / "point" / "cuda" / "launch.rs"
    name = re.search(r'COMMON: &str = include_str!\("(.*?)"\)', launch.read_text()).group(1)
    return launch.parent / name


def unlisted(tables):
    known = {file for files, _ in tables for file in files} | {common()}
    return [f"{path.relative_to(SOURCES)} is in no list of kernels"
            for path in sorted(SOURCES.rglob("*.cu")) if path not in known]


def compile_table(nvrtc, table, architecture, is_verbose):
    files, kernels = table
    if architecture < LEAST_ARCHITECTURE.get(files[0].name, 0):
        return []
    source = "".join(path.read_text() for path in [common(), *files])
    names = " ".join(path.stem for path in files)
    failures = []
    for definitions in definitions_of(files[0].name):
        title = f"sm_{architecture} {names} {' '.join(definitions)}".rstrip()
        options = [f"-D{definition}" for definition in definitions]
        ptx, log = nvrtc.compile(source, [f"--gpu-architecture=compute_{architecture}", *options])
        if ptx is None:
            failures.append(f"{title}\n{log}")
            continue
        entries = re.findall(r"\.entry (\w+)", ptx)
        failures += [f"{title}: there is no kernel {name}" for name in kernels
                     if name not in entries]
        image, log = nvrtc.compile(
            source, [f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v", *options])
        if image is None:
            failures.append(f"{title}\n{log}")
            continue
        report(title, resources(log), is_verbose)
    return failures


def definitions_of(name):
    """What the crate defines before it compiles a list that begins with this file."""
    if name == "distances.cu":
        return [[f"DIM={dim}"] for dim in DIMENSIONS]
    if name == "fused.cu":
        return list(fused_definitions())
    return [[]]


def fused_definitions():
    """As `fused::Key::definitions`; groups and warps are read from `fused::layout`."""
    rust = (SOURCES / "point" / "cuda" / "fused.rs").read_text()
    known = set(re.findall(r'\("([A-Z0-9]+)", ', rust)) | set(re.findall(r'"([A-Z]+)=\{', rust))
    if known != set(FUSED_NAMES):
        sys.exit(f"fused.rs defines {sorted(known)}, this tool {sorted(FUSED_NAMES)}")
    arm = r"\((true|false), (true|false), (true|false|_)\) => \((\d+), (\d+)\)"
    arms = re.findall(arm, rust)
    for h1, h2, d, dx in FUSED_SHAPES:
        for split, half in [(1, 0), (0, 0), (0, 1)]:
            for kind, leak in ACTIVATIONS:
                facts = [str(fact).lower() for fact in (h2 <= 64, split == 1, kind == 1)]
                groups, warps = next(
                    (groups, warps) for *pattern, groups, warps in arms
                    if all(want in ("_", fact) for want, fact in zip(pattern, facts)))
                for leapfrog in (0, 1):
                    values = [h1, h2, d, dx, split, half, leapfrog, groups, warps, kind, leak]
                    yield [f"{name}={value}" for name, value in zip(FUSED_NAMES, values)]


def resources(log):
    """(kernel, registers, bytes that are spilled) of every kernel in the assembler's log."""
    found = []
    for part in re.split(r"Compiling entry function '", log)[1:]:
        name = part.split("'")[0]
        stores = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        spilled = sum(map(int, stores.groups())) if stores else 0
        found.append((name, int(registers.group(1)) if registers else None, spilled))
    return found


def report(title, kernels, is_verbose):
    registers = [count for _, count, _ in kernels if count is not None]
    spills = [(name, spilled) for name, _, spilled in kernels if spilled]
    most = f"at most {max(registers)} registers" if registers else "registers not told"
    spilled = ", ".join(f"{name} {size} bytes" for name, size in spills) or "none"
    print(f"{title}: {len(kernels)} kernels, {most}, spills: {spilled}")
    if is_verbose:
        for name, count, spilled in kernels:
            print(f"    {name}: {count} registers, {spilled} bytes spilled")


class Nvrtc:
    """The few functions of libnvrtc that are needed."""

    def __init__(self, path):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            sys.exit(f"cannot load NVRTC: {error}")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, source, options):
        """The PTX (empty where machine code was asked for), or None, and the log."""
        program = ctypes.c_void_p()
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0,
                                        None, None)
        status = self.library.nvrtcCompileProgram(program, len(options), array)
        log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
        ptx = None if status else self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return ptx, log

    def text(self, program, size_of, get):
        size = ctypes.c_size_t()
        if getattr(self.library, size_of)(program, ctypes.byref(size)) or size.value == 0:
            return ""
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, get)(program, buffer)
        return buffer.value.decode(errors="replace")


if __name__ == "__main__":
    main()
