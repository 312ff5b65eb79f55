// The force layout: ForceAtlas2, a few steps at a time, until things stand still.
import iterate from "graphology-layout-forceatlas2/iterate";

export interface Start {
  positions: Float32Array;
  /** Pairs of places in `positions`. */
  edges: Uint32Array;
}

export interface Moved {
  positions: Float32Array;
  isDone: boolean;
}

const NODE = 10;
const EDGE = 3;
const STEPS_MAX = 600;
/** Thousands of nodes: fewer steps, and coarser ones, show the same. */
const STEPS_MAX_LARGE = 300;
const LARGE = 2000;

/** Returns what makes the next steps, null after the last: the page asks frame by frame, so none pile up. */
export function begin({ positions, edges }: Start, sliceMs = 16): () => Moved | null {
  const size = positions.length / 2;
  const nodes = new Float32Array(size * NODE);
  for (let place = 0; place < size; place++) {
    nodes[place * NODE] = positions[place * 2];
    nodes[place * NODE + 1] = positions[place * 2 + 1];
    nodes[place * NODE + 6] = 1;
    nodes[place * NODE + 7] = 1;
    nodes[place * NODE + 8] = 1;
  }
  const links = new Float32Array((edges.length / 2) * EDGE);
  for (let place = 0; place < edges.length / 2; place++) {
    links[place * EDGE] = edges[place * 2] * NODE;
    links[place * EDGE + 1] = edges[place * 2 + 1] * NODE;
    links[place * EDGE + 2] = 1;
    nodes[edges[place * 2] * NODE + 6] += 1;
    nodes[edges[place * 2 + 1] * NODE + 6] += 1;
  }
  const settings = {
    linLogMode: false, outboundAttractionDistribution: false, adjustSizes: false, edgeWeightInfluence: 1,
    scalingRatio: size > LARGE ? 4 : 12, strongGravityMode: true, gravity: 0.06, slowDown: 1 + Math.log(Math.max(size, 1)),
    barnesHutOptimize: size > 600, barnesHutTheta: size > LARGE ? 1.2 : 0.7,
  };
  const steps = size > LARGE ? STEPS_MAX_LARGE : STEPS_MAX;
  let step = 0;
  return () => {
    if (step >= steps) return null;
    const until = performance.now() + sliceMs;
    do {
      iterate(settings, nodes, links);
      step += 1;
    } while (performance.now() < until && step < steps);
    const moved = new Float32Array(size * 2);
    for (let place = 0; place < size; place++) {
      moved[place * 2] = nodes[place * NODE];
      moved[place * 2 + 1] = nodes[place * NODE + 1];
    }
    return { positions: moved, isDone: step >= steps };
  };
}
