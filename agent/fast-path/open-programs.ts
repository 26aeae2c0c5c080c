import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import { flowFilterOf } from '../../dataplane/fast-path/flow-filter.ts';
import { type FlowPrograms, openFlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { createUnnamedNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import { messageOf } from '../../runtime/error-text.ts';

/** Programs of the fast path that were loaded, or why not. */
export type ProgramsTrial = { readonly programs?: FlowPrograms; readonly problem?: string | undefined };

/** Loads the programs, or uses those on that an agent before this one left on links of this node. Changes nothing else. */
export function openPrograms(kernel: Pick<Kernel, 'rtnetlink'>): ProgramsTrial {
  let programs: FlowPrograms | undefined;
  try {
    programs = openFlowPrograms(findAttached(kernel));
    // Those that are reused are attached.
    if (!programs.isReused) tryAttach(programs);
    return { programs };
  } catch (error) {
    programs?.close();
    return { problem: messageOf(error) };
  }
}

/** Attaches them to the loopback of a throw-away namespace: a kernel may lack clsact or cls_bpf. */
function tryAttach(flows: FlowPrograms): void {
  using netns = createUnnamedNetns();
  using rtnetlink = openRtnetlinkIn(netns);
  const lo = rtnetlink.link.get({ ifname: 'lo' });
  if (lo === undefined) throw new Error('a new network namespace has no loopback');
  const at = { ifindex: lo.ifindex, ifname: lo.ifname };
  attachFilter({ rtnetlink, flows }, { ...at, direction: 'ingress', program: 'fast' });
  attachFilter({ rtnetlink, flows }, { ...at, direction: 'egress', program: 'learn' });
}

/** Finds the programs on the first link that has both; the others have the same ones, or get those. */
function findAttached({ rtnetlink }: Pick<Kernel, 'rtnetlink'>): { fastId: number; learnId: number } | undefined {
  const clsacts = rtnetlink.qdisc.list().filter(({ kind }) => kind === 'clsact');
  for (const { ifindex } of clsacts) {
    const filters = (['ingress', 'egress'] as const)
      .flatMap((direction) => rtnetlink.trafficFilter.list({ ifindex, parent: parentOf(direction) }))
      .flatMap((filter) => flowFilterOf(filter) ?? []);
    const fastId = filters.find(({ program }) => program === 'fast')?.programId;
    const learnId = filters.find(({ program }) => program === 'learn')?.programId;
    if (fastId !== undefined && learnId !== undefined) return { fastId, learnId };
  }
  return undefined;
}
