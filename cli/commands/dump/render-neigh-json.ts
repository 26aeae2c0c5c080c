import type { NeighMessage } from '../../../netlink/neigh-message.ts';
import {
  NTF_EXT_LEARNED,
  NTF_EXT_MANAGED,
  NTF_OFFLOADED,
  NTF_PROXY,
  NTF_ROUTER,
  NUD_DELAY,
  NUD_FAILED,
  NUD_INCOMPLETE,
  NUD_NOARP,
  NUD_NONE,
  NUD_PERMANENT,
  NUD_PROBE,
  NUD_REACHABLE,
  NUD_STALE,
} from '../../../netlink/uapi/neighbour.ts';
import type { IpNames, IpObject } from './ip-names.ts';

/** Renders a neighbour as `ip -j neigh` prints it. @see ip-neighbour(8), iproute2 ip/ipneigh.c */
export function renderNeighJson(neigh: NeighMessage, names: IpNames): IpObject {
  const { flags, state } = neigh;
  return {
    dst: neigh.dst,
    dev: names.link(neigh.ifindex),
    ...(neigh.lladdr === undefined ? {} : { lladdr: neigh.lladdr }),
    ...flag('router', flags, NTF_ROUTER),
    ...flag('proxy', flags, NTF_PROXY),
    ...flag('managed', neigh.flagsExt ?? 0, NTF_EXT_MANAGED),
    ...flag('extern_learn', flags, NTF_EXT_LEARNED),
    ...flag('offload', flags, NTF_OFFLOADED),
    ...((flags & NTF_PROXY) === 0 ? { state: neighStates(state) } : {}),
    ...(neigh.protocol === undefined ? {} : { protocol: names.protocol(neigh.protocol) }),
  };
}

/** Names the states of a neighbour, usually one. */
function neighStates(state: number): readonly string[] {
  return state === NUD_NONE ? ['NONE'] : STATES.flatMap(([bit, name]) => ((state & bit) === 0 ? [] : [name]));
}

/** States in the order of iproute2. */
const STATES: readonly (readonly [number, string])[] = [
  [NUD_INCOMPLETE, 'INCOMPLETE'],
  [NUD_REACHABLE, 'REACHABLE'],
  [NUD_STALE, 'STALE'],
  [NUD_DELAY, 'DELAY'],
  [NUD_PROBE, 'PROBE'],
  [NUD_FAILED, 'FAILED'],
  [NUD_NOARP, 'NOARP'],
  [NUD_PERMANENT, 'PERMANENT'],
];

function flag(name: string, flags: number, bit: number): IpObject {
  return (flags & bit) === 0 ? {} : { [name]: null };
}
