/** A graph: the steps of state `i` are `targets[begins[i]] .. targets[ends[i] - 1]`. */
export type Graph = { readonly begins: Uint32Array; readonly ends: Uint32Array; readonly targets: Uint32Array };

const UNSEEN = 0xffffffff;

/**
 * Marks with 1 the states of bottom components: strongly connected, and no step leaves. A state without steps is one.
 * Tarjan's algorithm with a stack of its own, as paths are longer than what calls may nest.
 */
export function findBottomComponents(states: number, { begins, ends, targets }: Graph): Uint8Array {
  const isBottom = new Uint8Array(states);
  const order = new Uint32Array(states).fill(UNSEEN);
  const lowest = new Uint32Array(states);
  const nextStep = new Uint32Array(states);
  const isOpen = new Uint8Array(states);
  /** 1 once a step from the state, or from one below it in its component, leads to a finished component. */
  const leaves = new Uint8Array(states);
  const open = new Uint32Array(states);
  const path = new Uint32Array(states);
  let [openCount, pathLength, count] = [0, 0, 0];

  const enter = (state: number) => {
    order[state] = count;
    lowest[state] = count++;
    nextStep[state] = at(begins, state);
    isOpen[state] = 1;
    open[openCount++] = state;
    path[pathLength++] = state;
  };
  const close = (root: number) => {
    const first = open.lastIndexOf(root, openCount - 1);
    let staysInside = 1;
    for (let i = first; i < openCount; i++) if (leaves[at(open, i)] === 1) staysInside = 0;
    for (let i = first; i < openCount; i++) {
      const member = at(open, i);
      isOpen[member] = 0;
      isBottom[member] = staysInside;
    }
    openCount = first;
  };

  for (let root = 0; root < states; root++) {
    if (order[root] !== UNSEEN) continue;
    enter(root);
    while (pathLength > 0) {
      const state = at(path, pathLength - 1);
      const step = at(nextStep, state);
      if (step < at(ends, state)) {
        nextStep[state] = step + 1;
        const target = at(targets, step);
        if (order[target] === UNSEEN) enter(target);
        else if (isOpen[target] === 1) lowest[state] = Math.min(at(lowest, state), at(order, target));
        else leaves[state] = 1;
        continue;
      }
      pathLength--;
      const isRoot = lowest[state] === order[state];
      if (isRoot) close(state);
      if (pathLength === 0) continue;
      const parent = at(path, pathLength - 1);
      if (isRoot) leaves[parent] = 1;
      else lowest[parent] = Math.min(at(lowest, parent), at(lowest, state));
    }
  }
  return isBottom;
}

/** Typed arrays are read in range here; the compiler cannot know. */
function at(array: Uint32Array, index: number): number {
  return array[index] ?? 0;
}
