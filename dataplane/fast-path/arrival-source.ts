import type { SourceLine } from '../../bpf/assemble.ts';
import { alu, call, jump, jumpIf, label, load, loadMap, move, store } from '../../bpf/source.ts';
import { ARRIVALS_VALUE, FLOW_KEY } from './flow-layout.ts';
import { SKB } from './flow-source.ts';

// What a packet was when it came in, until it leaves: its key is kept in a place of its CPU, and the place's number goes with
// the packet, in tc_index, which forwarding leaves alone and no queueing discipline of today reads.

const { slots, slotShift, slotCount, tag } = ARRIVALS_VALUE;
const TAG = { v4: 0x40000, v6: 0x60000 } as const;
const NUMBER = 0xffff;

type Version = 'v4' | 'v6';

const wordsOf = (version: Version): readonly number[] =>
  Array.from({ length: FLOW_KEY[version === 'v4' ? 4 : 6].bytes / 8 }, (_, at) => at * 8);
const keyOf = (version: Version): number => -FLOW_KEY[version === 'v4' ? 4 : 6].bytes;

/**
 * Lines at the label `<version>-slow`, for a packet that may be learned when it leaves. `r6`: argument; the key is on the stack.
 * @param scratch Place of 8 bytes on the stack
 */
export function rememberArrival(version: Version, scratch: number): readonly SourceLine[] {
  return [
    label(`${version}-slow`),
    ...placesOfCpu(scratch),
    load(32, 'r1', 'r0', 0),
    alu('add', 'r1', 1),
    alu('and', 'r1', NUMBER),
    store(32, 'r0', 0, 'r1'),
    store(32, 'r6', SKB.tcIndex, 'r1'),
    ...place(),
    alu('or', 'r1', TAG[version]),
    store(32, 'r0', slots + tag, 'r1'),
    ...wordsOf(version).flatMap((word) => [
      load(64, 'r1', 'r10', keyOf(version) + word),
      store(64, 'r0', slots + word, 'r1'),
    ]),
    jump('out'),
  ];
}

/**
 * Lines that go to `out` unless the packet came in with the addresses and ports that it leaves with: rules may have rewritten
 * them, and the flow that comes in is another one then, about which the kernel may decide otherwise.
 * @param scratch Place of 8 bytes on the stack
 */
export function isAsArrived(version: Version, scratch: number): readonly SourceLine[] {
  return [
    ...placesOfCpu(scratch),
    load(32, 'r1', 'r6', SKB.tcIndex),
    ...place(),
    alu('or', 'r1', TAG[version]),
    load(32, 'r2', 'r0', slots + tag),
    jumpIf('r1', '!=', 'r2', 'out'),
    ...wordsOf(version).flatMap((word) => [
      load(64, 'r1', 'r0', slots + word),
      load(64, 'r2', 'r10', keyOf(version) + word),
      jumpIf('r1', '!=', 'r2', 'out'),
    ]),
  ];
}

/** `r0`: the places of this CPU. */
function placesOfCpu(scratch: number): readonly SourceLine[] {
  return [
    store(64, 'r10', scratch, 0),
    loadMap('r1', 'arrivals'),
    move('r2', 'r10'),
    alu('add', 'r2', scratch),
    call('map_lookup_elem'),
    jumpIf('r0', '==', 0, 'out'),
  ];
}

/** Moves `r0` to the place of the number in `r1`. */
function place(): readonly SourceLine[] {
  return [move('r2', 'r1'), alu('and', 'r2', slotCount - 1), alu('lsh', 'r2', slotShift), alu('add', 'r0', 'r2')];
}
