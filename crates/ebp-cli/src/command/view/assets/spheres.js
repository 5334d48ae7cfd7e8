// Points as shaded spheres, all clouds of a scene in one draw call.
//
// A point is a vertex: two places of 16 bits a coordinate, which are mixed on the way from one step to
// the next, the number of its slot and its value. A slot is a place on the canvas with a camera; slots lie in
// a texture of floats, so that turning thousands of clouds writes a few numbers. The fragment shader finds
// the sphere in its square, its normal and its depth. One vertex a point, not four of an instanced square:
// devices are slow at hundreds of thousands of tiny instances.
const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec3 here;
layout(location = 1) in vec3 there;
layout(location = 2) in vec2 extra;             // slot, value
uniform highp sampler2D slots;                   // two texels a slot
uniform vec3 low, high, centre;
uniform float span, mixing, radius;
uniform vec2 canvas;                             // pixels
uniform int colouring;
uniform vec2 pixels;                             // least and most pixels of a radius
flat out vec3 middle;                            // of the sphere from that of its cell, radius; in half cells
flat out vec4 ball;                              // depth, depth of a radius, shade by depth, share of the map
flat out float dim;
void main() {
  int slot = int(extra.x + 0.5);
  vec4 place = texelFetch(slots, ivec2(2 * (slot % 1024), slot / 1024), 0);
  vec4 view = texelFetch(slots, ivec2(2 * (slot % 1024) + 1, slot / 1024), 0);
  vec3 p = (mix(here, there, mixing) * (high - low) + low - centre) / span;
  float c = cos(view.x), s = sin(view.x), ct = cos(view.y), st = sin(view.y);
  vec3 turned = vec3(c * p.x - s * p.y, s * p.x + c * p.y, p.z);            // about the vertical
  vec3 q = vec3(turned.x, ct * turned.z + st * turned.y, ct * turned.y - st * turned.z);
  // q: right, up, away. The eye is four half spans away, farther than any point of a cloud.
  float away = 4.0 + q.z;
  float zoom = view.z * 4.0 / away;
  float r = clamp(radius * zoom * place.z, pixels.x, pixels.y);
  vec2 from_middle = q.xy * zoom * place.z;                       // y up; pixels are counted downwards
  vec2 screen = vec2(place.x + from_middle.x, place.y - from_middle.y);
  gl_Position = vec4(screen / canvas * 2.0 - 1.0, 0.0, 1.0);
  gl_Position.y = -gl_Position.y;
  gl_PointSize = 2.0 * r;
  middle = vec3(from_middle, r) / place.w;
  ball = vec4((away - 1.0) / 6.0, radius / 6.0, smoothstep(2.6, 5.4, away),
    colouring == 1 ? extra.y : colouring == 0 ? (p.z + 1.0) * 0.5 : colouring == 3 ? view.w : smoothstep(5.2, 2.8, away));
  dim = colouring == 1 && extra.y > 1.0 ? 1.0 : 0.0;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D map;
uniform vec3 haze;
uniform float hazing;
flat in vec3 middle;
flat in vec4 ball;
flat in float dim;
out vec4 colour;
void main() {
  vec2 corner = vec2(2.0 * gl_PointCoord.x - 1.0, 1.0 - 2.0 * gl_PointCoord.y);
  vec2 inside = middle.xy + corner * middle.z;
  float square = dot(corner, corner);
  if (square > 1.0 || abs(inside.x) > 1.0 || abs(inside.y) > 1.0) discard;
  vec3 normal = vec3(corner, sqrt(1.0 - square));
  gl_FragDepth = clamp(ball.x - normal.z * ball.y, 0.0, 1.0);
  vec3 base = dim > 0.5 ? vec3(0.55) : texture(map, vec2(clamp(ball.w, 0.0, 1.0), 0.5)).rgb;
  float key = max(dot(normal, normalize(vec3(-0.45, 0.75, 0.6))), 0.0);
  float sky = 0.5 + 0.5 * normal.y;
  float shine = pow(max(dot(normal, normalize(vec3(-0.3, 0.55, 0.9))), 0.0), 40.0);
  float edge = smoothstep(0.0, 0.55, normal.z);
  vec3 lit = base * (0.36 + 0.26 * sky + 0.55 * key) * mix(0.62, 1.0, edge) + vec3(0.16 * shine);
  colour = vec4(mix(lit, haze, hazing * ball.z), 1.0);
}`;

class Spheres {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser has no WebGL2; a newer one, or one with graphics switched on, shows the clouds");
    this.gl = gl;
    this.canvas = canvas;
    this.calls = 0;
    this.count = 0;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.at = Object.fromEntries(
      ["slots", "low", "high", "centre", "span", "mixing", "radius", "canvas", "colouring", "map", "haze", "hazing", "pixels"]
        .map((name) => [name, gl.getUniformLocation(program, name)]));
    this.points = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.points);
    for (const [place, size, offset] of [[0, 3, 0], [1, 3, 6]]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.UNSIGNED_SHORT, true, 20, offset);
    }
    gl.enableVertexAttribArray(2);
    gl.vertexAttribPointer(2, 2, gl.FLOAT, false, 20, 12);
    this.largest = gl.getParameter(gl.ALIASED_POINT_SIZE_RANGE)[1] / 2;
    this.slotTexture = this.texture(0);
    this.mapTexture = this.texture(1);
    gl.uniform1i(this.at.slots, 0);
    gl.uniform1i(this.at.map, 1);
    gl.enable(gl.DEPTH_TEST);
    gl.clearColor(0, 0, 0, 0);
  }

  texture(unit) {
    const { gl } = this;
    const made = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, made);
    const filter = unit === 0 ? gl.NEAREST : gl.LINEAR;
    for (const [key, value] of [[gl.TEXTURE_MIN_FILTER, filter], [gl.TEXTURE_MAG_FILTER, filter],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE]]) gl.texParameteri(gl.TEXTURE_2D, key, value);
    return made;
  }

  // The box that 16-bit places lie in, and what is looked at: a cube of half side `span` about `centre`.
  setBox(low, high, centre, span) {
    const { gl, at } = this;
    gl.uniform3fv(at.low, low);
    gl.uniform3fv(at.high, high);
    gl.uniform3fv(at.centre, centre);
    gl.uniform1f(at.span, span);
  }

  setMap(table) {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, table.length / 4, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
  }

  // Clouds of a scene: `[{ slot, here, there, values }]`, places as arrays of 16-bit numbers.
  setClouds(clouds) {
    const { gl } = this;
    this.count = clouds.reduce((sum, cloud) => sum + cloud.here.length / 3, 0);
    const buffer = new ArrayBuffer(this.count * 20);
    const whole = new Uint16Array(buffer), real = new Float32Array(buffer);
    let row = 0;
    for (const { slot, here, there, values } of clouds) {
      for (let i = 0; i < here.length; i += 3, row++) {
        for (let c = 0; c < 3; c++) {
          whole[10 * row + c] = here[i + c];
          whole[10 * row + 3 + c] = there[i + c];
        }
        real[5 * row + 3] = slot;
        // 255 stands for a point without a value, drawn grey.
        real[5 * row + 4] = values ? (values[i / 3] === 255 ? 2 : values[i / 3] / 254) : 2;
      }
    }
    gl.bufferData(gl.ARRAY_BUFFER, buffer, gl.DYNAMIC_DRAW);
  }

  // `slots`: `[{ x, y, scale, half, turn, tip, zoom, share }]`, in pixels of the canvas, radians, and how far
  // on its way the cloud is.
  draw(slots, { radius, mixing, colouring, haze, hazing, most }) {
    const { gl, at, canvas } = this;
    const rows = Math.max(1, Math.ceil(slots.length / 1024));
    const data = new Float32Array(rows * 2048 * 4);
    slots.forEach((slot, i) => data.set([slot.x, slot.y, slot.scale, slot.half, slot.turn, slot.tip, slot.zoom, slot.share], 8 * i));
    gl.activeTexture(gl.TEXTURE0);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, 2048, rows, 0, gl.RGBA, gl.FLOAT, data);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.uniform2f(at.canvas, canvas.width, canvas.height);
    gl.uniform1f(at.radius, radius);
    gl.uniform1f(at.mixing, mixing);
    gl.uniform1i(at.colouring, colouring);
    gl.uniform3fv(at.haze, haze);
    gl.uniform1f(at.hazing, hazing);
    gl.uniform2f(at.pixels, 0.9, Math.min(most, this.largest));
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (this.count > 0) {
      gl.drawArrays(gl.POINTS, 0, this.count);
      this.calls += 1;
    }
  }
}
