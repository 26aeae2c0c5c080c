import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import { flowFilterOf } from '../../dataplane/fast-path/flow-filter.ts';
import { type FlowPrograms, openFlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import { flowtableReplaceCommands, flowtableText } from '../../dataplane/fast-path/flowtable.ts';
import { type ConnectionKeeper, keepConnections } from '../../dataplane/keep-connections.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE, NFT_TABLE, TABLE_ENI_BASE } from '../../dataplane/numbers.ts';
import { openCtnetlink } from '../../netlink/ctnetlink.ts';
import { createUnnamedNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { sysctlName, tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import type { NodeEvents } from '../events/node-events.ts';
import type { NodeRecord } from '../journal/node-record.ts';
import {
  chooseFastPath,
  type FastPathChoice,
  type FastPathFindings,
  problemOf,
  type WantedFastPath,
} from './choose-fast-path.ts';

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
  const mayBeHad = wanted !== 'off' && problemOf({ ...given, hasBeLiberal: true, problem: undefined }) === undefined;
  const hasBeLiberal = mayBeHad && (await hasTcpBeLiberal(kernel));
  const opened = hasBeLiberal ? await tryWanted(wanted, kernel) : {};
  const choice = chooseFastPath(wanted, { ...given, hasBeLiberal, problem: opened.problem });
  const { programs } = opened;
  if (choice.mode !== 'off') log.info('fast path', { mode: choice.mode, isReused: programs?.isReused });
  else if (wanted !== 'off') log.warn('the fast path stays off', { wanted, why: choice.why });
  return { choice, ...(programs === undefined ? {} : { programs }) };
}

/** A rule that makes the kernel load connection tracking. */
const TRACKING = `table inet ${NFT_TABLE} { chain forward { type filter hook forward priority 0; ct status assured accept; }; }`;

/**
 * Tells whether connection tracking has the setting. It comes with the module, which the kernel loads with the first rule that
 * needs it: after a reboot that may be ours, and our own table is loaded only after the choice.
 */
async function hasTcpBeLiberal({ sysctl, nft }: Pick<Kernel, 'sysctl' | 'nft'>): Promise<boolean> {
  const isThere = (): boolean => sysctl.find(tcpBeLiberal()) !== undefined;
  if (isThere()) return true;
  try {
    await nft.canonical(TRACKING);
  } catch (error) {
    if (!isNftError(error)) throw error;
  }
  return isThere();
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

/** A new namespace has this interface only. */
const DEVICE = 'lo';

/**
 * Tries a flowtable with a device and a rule that learns, in a namespace of its own. Returns why it cannot be had; undefined when
 * the kernel takes it.
 */
export async function tryFlowtable({ nft }: Pick<Kernel, 'nft'>): Promise<string | undefined> {
  try {
    await nft.canonical(flowtableReplaceCommands(flowtableText([TABLE_ENI_BASE + 1]), [DEVICE]), FLOWTABLE_TABLE);
    return undefined;
  } catch (error) {
    if (!isNftError(error, 'NFT_REFUSED')) return messageOf(error);
    const reason = /Error: (.*)/.exec(error.stderr)?.[1] ?? error.stderr.trim();
    return `the kernel takes no flowtable of nftables (${reason}): load nf_flow_table_inet and nft_flow_offload, or update it`;
  }
}

/**
 * Reports by event a fast path that cannot be had, and one that is another than the agent before this one had. Never throws.
 * @param last the last plan of the agent before this one; undefined when none is recorded
 */
export function reportFastPath(
  { wanted, mode, why }: FastPathChoice,
  last: Pick<NodeRecord, 'node'> | undefined,
  events: NodeEvents,
): void {
  if (why !== '') events.report('Warning', 'FastPathOff', `the fast path stays off: ${why}`);
  if (why !== '' || last === undefined) return;
  const { fastPath: before = 'off' } = last.node;
  if (before === mode) return;
  events.report('Normal', 'FastPathChanged', `the fast path is ${mode} (--fast-path=${wanted}), and was ${before}`);
}

/**
 * Opens the keeper of the TCP connections of the current network namespace. The setting that they need is not given back
 * where they cannot be marked: they would stop, and to keep it does no harm. That is tried once in the life of an agent.
 */
export function openConnectionKeeper(log: Logger): ConnectionKeeper {
  let hasFailed = false;
  return {
    canKeep: () => !hasFailed,
    keep: async () => {
      if (hasFailed) return false;
      try {
        using ctnetlink = openCtnetlink();
        const counts = await keepConnections(ctnetlink);
        log.info('TCP connections that live are marked: their packets stay valid', counts);
        return true;
      } catch (error) {
        hasFailed = true;
        const setting = sysctlName(tcpBeLiberal());
        log.warn(
          'TCP connections cannot be marked, and would stop where invalid packets are dropped: the setting that they need stays until the agent starts again. Drain the node before setting it back by hand',
          { setting, error },
        );
        return false;
      }
    },
  };
}
