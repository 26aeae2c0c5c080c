import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import { flowFilterOf } from '../../dataplane/fast-path/flow-filter.ts';
import { type FlowPrograms, openFlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { createUnnamedNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import {
  chooseFastPath,
  type FastPathChoice,
  type FastPathFindings,
  problemOf,
  type WantedFastPath,
} from './choose-fast-path.ts';
import { tryFlowtable } from './try-flowtable.ts';

/** The choice, and the programs where it is `bpf`. The owner of the agent closes them. */
type OpenedFastPath = { readonly choice: FastPathChoice; readonly programs?: FlowPrograms };

/**
 * Chooses the fast path, and tries it: loads its programs, or uses those on that an agent before this one left on links of this
 * node. Changes nothing else.
 */
export async function openFastPath(
  wanted: WantedFastPath,
  {
    kernel,
    log,
    ...given
  }: Omit<FastPathFindings, 'hasBeLiberal' | 'problem'> & {
    readonly kernel: Pick<Kernel, 'rtnetlink' | 'sysctl' | 'nft'>;
    readonly log: Logger;
  },
): Promise<OpenedFastPath> {
  const hasBeLiberal = kernel.sysctl.find(tcpBeLiberal()) !== undefined;
  const findings: FastPathFindings = { ...given, hasBeLiberal, problem: undefined };
  const opened = wanted === 'off' || problemOf(findings) !== undefined ? {} : await tryWanted(wanted, kernel);
  const choice = chooseFastPath(wanted, { ...findings, problem: opened.problem });
  const { programs } = opened;
  if (choice.mode !== 'off') log.info('fast path', { mode: choice.mode, isReused: programs?.isReused });
  else if (wanted !== 'off') log.warn('the fast path stays off', { wanted, why: choice.why });
  return { choice, ...(programs === undefined ? {} : { programs }) };
}

type Trial = { readonly programs?: FlowPrograms; readonly problem?: string | undefined };

async function tryWanted(wanted: WantedFastPath, kernel: Pick<Kernel, 'rtnetlink' | 'nft'>): Promise<Trial> {
  return wanted === 'flowtable' ? { problem: await tryFlowtable(kernel) } : tryPrograms(kernel);
}

function tryPrograms(kernel: Pick<Kernel, 'rtnetlink'>): Trial {
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
