// Dots and lines by WebGL. Places are one small texture that every vertex reads, so a step of the layout
// uploads eight bytes per node and nothing per edge, and a frame is two draw calls whatever its size.

import type { Detail } from "./pace";

/** What is drawn, as columns: nodes by their place in the list, lines as pairs of such places. */
export interface Scene {
  size: number;
  /** x and y of each node, filled up to whole rows of the texture. */
  places: Float32Array;
  radii: Float32Array;
  /** Four bytes per node. */
  colours: Uint8Array;
  links: Uint32Array;
  /** Four bytes per line; where the last is 0, the line has the colour of the theme. */
  linkColours: Uint8Array;
  linkWidth: number;
  hasArrows: boolean;
}

/** How places become pixels: those of `x`, `y` are in the middle. */
export interface View {
  x: number;
  y: number;
  scale: number;
  /** How much larger than at first nodes are drawn. */
  grow: number;
  width: number;
  height: number;
}

const COLUMNS = 1024;
const QUAD_VERTICES = 6;
const ARROW_VERTICES = 3;
const THIN_VERTICES = 2;

const TEXTURES = ["places", "radii", "links", "linkColours"] as const;
type Texture = (typeof TEXTURES)[number];

/** Values, filled up to whole rows of a texture with so many of them per cell. */
function fillRows<T extends Float32Array | Uint32Array | Uint8Array>(values: T, each: number): T {
  const rows = Math.max(1, Math.ceil(values.length / each / COLUMNS));
  const made = new (values.constructor as new (size: number) => T)(rows * COLUMNS * each);
  made.set(values);
  return made;
}

export function emptyScene(): Scene {
  return { size: 0, places: makePlaces(0), radii: new Float32Array(0), colours: new Uint8Array(0), links: new Uint32Array(0), linkColours: new Uint8Array(0), linkWidth: 1, hasArrows: false };
}

export function makePlaces(size: number): Float32Array {
  return new Float32Array(Math.max(1, Math.ceil(size / COLUMNS)) * COLUMNS * 2);
}

const SHARED = `#version 300 es
precision highp float;
uniform highp sampler2D places;
uniform highp sampler2D radii;
uniform vec2 size;
uniform vec3 eye;
uniform float grow;
uniform float ratio;
vec4 nodeAt(uint place) {
  ivec2 cell = ivec2(int(place) % ${COLUMNS}, int(place) / ${COLUMNS});
  vec2 pixels = (texelFetch(places, cell, 0).xy - eye.xy) * eye.z;
  return vec4(pixels, texelFetch(radii, cell, 0).x * grow, 0.0);
}
vec4 onScreen(vec2 pixels) {
  return vec4(pixels * vec2(2.0, -2.0) / size, 0.0, 1.0);
}
`;

const NODE_VERTEX = `${SHARED}
in vec4 colour;
out vec4 fill;
out float radius;
void main() {
  vec4 node = nodeAt(uint(gl_VertexID));
  radius = node.z * ratio;
  gl_PointSize = radius * 2.0 + 2.0;
  gl_Position = onScreen(node.xy);
  fill = colour;
}`;

const NODE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 fill;
in float radius;
out vec4 result;
void main() {
  float away = length(gl_PointCoord - 0.5) * (radius * 2.0 + 2.0);
  float cover = clamp(radius + 0.5 - away, 0.0, 1.0);
  if (cover <= 0.0) discard;
  result = vec4(fill.rgb, 1.0) * cover;
}`;

// Each line is a strip from rim to rim, and behind it, where arrows are wanted, a triangle; or two points
// while things move. Vertices find their line by number: software draws instances one by one, which takes
// twenty times as long as the lines themselves.
const LINE_VERTEX = `${SHARED}
uniform highp usampler2D links;
uniform sampler2D linkColours;
uniform int vertices;
uniform int stride;
uniform float thick;
uniform float arrow;
uniform vec3 themed;
out vec4 fill;
out float across;
out float reach;
void main() {
  int line = gl_VertexID / vertices * stride;
  int vertex = gl_VertexID % vertices;
  ivec2 cell = ivec2(line % ${COLUMNS}, line / ${COLUMNS});
  uvec2 ends = texelFetch(links, cell, 0).xy;
  vec4 colour = texelFetch(linkColours, cell, 0);
  vec4 from = nodeAt(ends.x);
  vec4 to = nodeAt(ends.y);
  vec2 way = to.xy - from.xy;
  float far = length(way);
  vec2 ahead = far > 0.0 ? way / far : vec2(0.0);
  vec2 aside = vec2(-ahead.y, ahead.x);
  vec2 tip = to.xy - ahead * to.z;
  float half_ = thick * 0.5 + 0.5;
  fill = colour.a > 0.0 ? colour : vec4(themed, 1.0);
  if (vertices == ${THIN_VERTICES}) {
    across = 0.0;
    reach = 1.0;
    gl_Position = onScreen(vertex == 0 ? from.xy : to.xy);
  } else if (vertex < ${QUAD_VERTICES}) {
    int corner = vertex == 3 ? 2 : vertex == 4 ? 1 : vertex == 5 ? 3 : vertex;
    float side = corner % 2 == 0 ? -1.0 : 1.0;
    vec2 along = corner < 2 ? from.xy + ahead * from.z : tip - ahead * arrow * 0.8;
    across = side * half_;
    reach = half_;
    gl_Position = onScreen(along + aside * across);
  } else {
    int corner = vertex - ${QUAD_VERTICES};
    across = 0.0;
    reach = 1.0;
    gl_Position = onScreen(corner == 0 ? tip : tip - ahead * arrow + aside * arrow * (corner == 1 ? 0.45 : -0.45));
  }
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 fill;
in float across;
in float reach;
out vec4 result;
void main() {
  result = vec4(fill.rgb, 1.0) * clamp(reach - abs(across), 0.0, 1.0);
}`;

interface Program {
  handle: WebGLProgram;
  array: WebGLVertexArrayObject;
  uniform: (name: string) => WebGLUniformLocation | null;
}

export class Painter {
  private readonly gl: WebGL2RenderingContext;
  private nodes!: Program;
  private lines!: Program;
  private colours!: WebGLBuffer;
  /** In the order of `TEXTURES`. */
  private textures!: WebGLTexture[];
  private scene = emptyScene();
  private begun: { at: number; until: WebGLSync | null } | null = null;

  /** Throws where the browser has no WebGL 2. */
  constructor(private readonly canvas: HTMLCanvasElement, private readonly onRestored: () => void) {
    const found = canvas.getContext("webgl2", { antialias: false, depth: false, alpha: true });
    if (!found) throw new Error("no WebGL");
    this.gl = found;
    this.build();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.build();
      this.take(this.scene);
      this.onRestored();
    });
  }

  /** Upload a scene. Afterwards `move` is enough while only places change. */
  take(scene: Scene): void {
    const { gl } = this;
    this.scene = scene;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.colours);
    gl.bufferData(gl.ARRAY_BUFFER, scene.colours, gl.STATIC_DRAW);
    const fill = (name: Texture, each: number, stored: number, format: number, kind: number, values: Float32Array | Uint32Array | Uint8Array) => {
      const data = fillRows(values, each);
      this.bind(name);
      gl.texImage2D(gl.TEXTURE_2D, 0, stored, COLUMNS, data.length / each / COLUMNS, 0, format, kind, data);
    };
    fill("radii", 1, gl.R32F, gl.RED, gl.FLOAT, scene.radii);
    fill("links", 2, gl.RG32UI, gl.RG_INTEGER, gl.UNSIGNED_INT, scene.links);
    fill("linkColours", 4, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, scene.linkColours);
    fill("places", 2, gl.RG32F, gl.RG, gl.FLOAT, scene.places);
  }

  move(): void {
    const { gl, scene } = this;
    this.bind("places");
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, COLUMNS, scene.places.length / (COLUMNS * 2), gl.RG, gl.FLOAT, scene.places);
  }

  paint(view: View, themed: [number, number, number], detail: Detail): void {
    const { gl, scene, canvas } = this;
    const ratio = devicePixelRatio * detail.ratio;
    const [width, height] = [Math.max(1, Math.round(view.width * ratio)), Math.max(1, Math.round(view.height * ratio))];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    if (scene.links.length) {
      this.use(this.lines, view, ratio);
      gl.uniform1f(this.lines.uniform("thick"), scene.linkWidth);
      gl.uniform1f(this.lines.uniform("arrow"), scene.hasArrows ? 4 + scene.linkWidth * 2 : 0);
      gl.uniform3f(this.lines.uniform("themed"), themed[0] / 255, themed[1] / 255, themed[2] / 255);
      const vertices = detail.isThin ? THIN_VERTICES : QUAD_VERTICES + (scene.hasArrows ? ARROW_VERTICES : 0);
      gl.uniform1i(this.lines.uniform("vertices"), vertices);
      gl.uniform1i(this.lines.uniform("stride"), detail.stride);
      gl.drawArrays(detail.isThin ? gl.LINES : gl.TRIANGLES, 0, vertices * Math.ceil(scene.links.length / 2 / detail.stride));
    }
    if (scene.size) {
      this.use(this.nodes, view, ratio);
      gl.drawArrays(gl.POINTS, 0, scene.size);
    }
    this.begun = { at: performance.now(), until: gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0) };
    gl.flush();
  }

  /** How many milliseconds the last frame took; 0 if none was asked for since, null while it is drawn. */
  finish(): number | null {
    const { gl, begun } = this;
    if (!begun?.until) return 0;
    if (gl.clientWaitSync(begun.until, 0, 0) === gl.TIMEOUT_EXPIRED) return null;
    gl.deleteSync(begun.until);
    this.begun = null;
    return performance.now() - begun.at;
  }

  close(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private use(program: Program, view: View, ratio: number): void {
    const { gl } = this;
    gl.useProgram(program.handle);
    gl.bindVertexArray(program.array);
    TEXTURES.forEach((name, unit) => gl.uniform1i(program.uniform(name), unit));
    gl.uniform2f(program.uniform("size"), view.width, view.height);
    gl.uniform3f(program.uniform("eye"), view.x, view.y, view.scale);
    gl.uniform1f(program.uniform("grow"), view.grow);
    gl.uniform1f(program.uniform("ratio"), ratio);
  }

  private build(): void {
    const { gl } = this;
    this.nodes = this.link(NODE_VERTEX, NODE_FRAGMENT);
    this.lines = this.link(LINE_VERTEX, LINE_FRAGMENT);
    this.colours = gl.createBuffer()!;
    this.textures = TEXTURES.map((_, unit) => this.makeTexture(unit));
    gl.bindVertexArray(this.nodes.array);
    const colour = gl.getAttribLocation(this.nodes.handle, "colour");
    gl.bindBuffer(gl.ARRAY_BUFFER, this.colours);
    gl.enableVertexAttribArray(colour);
    gl.vertexAttribPointer(colour, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  }

  private bind(name: Texture): void {
    const unit = TEXTURES.indexOf(name);
    this.gl.activeTexture(this.gl.TEXTURE0 + unit);
    this.gl.bindTexture(this.gl.TEXTURE_2D, this.textures[unit]);
  }

  private makeTexture(unit: number): WebGLTexture {
    const { gl } = this;
    const made = gl.createTexture()!;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, made);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    return made;
  }

  private link(vertex: string, fragment: string): Program {
    const { gl } = this;
    const handle = gl.createProgram()!;
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(handle, shader);
    }
    gl.linkProgram(handle);
    if (!gl.getProgramParameter(handle, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(handle) ?? "no WebGL");
    const known = new Map<string, WebGLUniformLocation | null>();
    const uniform = (name: string) => known.get(name) ?? known.set(name, gl.getUniformLocation(handle, name)).get(name)!;
    return { handle, array: gl.createVertexArray()!, uniform };
  }
}
