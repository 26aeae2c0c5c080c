import type { FlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import { flowtableReplaceCommands, flowtableText } from '../../dataplane/fast-path/flowtable.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE, NFT_TABLE, TABLE_ENI_BASE } from '../../dataplane/numbers.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import type { NodeEvents } from '../events/node-events.ts';
import type { NodeRecord } from '../journal/node-record.ts';
import {
  chooseFastPath,
  type FastPathChoice,
  type FastPathFindings,
  problemOf,
  type WantedFastPath,
} from './choose-fast-path.ts';
import type { ProgramsTrial } from './open-programs.ts';

/** The choice, and the programs where it is `bpf`. The owner of the agent closes them. */
type OpenedFastPath = { readonly choice: FastPathChoice; readonly programs?: FlowPrograms };

/** What the choice depends on, and what tries it. */
type FastPathDeps = Omit<FastPathFindings, 'hasBeLiberal' | 'problem'> & {
  readonly kernel: Pick<Kernel, 'rtnetlink' | 'sysctl' | 'nft'>;
  readonly host: { openPrograms(kernel: Pick<Kernel, 'rtnetlink'>): ProgramsTrial };
  readonly log: Logger;
};

/**
 * Chooses the fast path, and tries it: loads its programs, or uses those on that an agent before this one left on links of this
 * node. Changes nothing else.
 */
export async function openFastPath(
  wanted: WantedFastPath,
  { kernel, host, log, ...given }: FastPathDeps,
): Promise<OpenedFastPath> {
  const mayBeHad = wanted !== 'off' && problemOf({ ...given, hasBeLiberal: true, problem: undefined }) === undefined;
  const hasBeLiberal = mayBeHad && (await hasTcpBeLiberal(kernel));
  const opened = hasBeLiberal ? await tryWanted(wanted, { kernel, host }) : {};
  const choice = chooseFastPath(wanted, { ...given, hasBeLiberal, problem: opened.problem });
  const { programs } = opened;
  if (choice.mode !== 'off') log.info('fast path', { mode: choice.mode, isReused: programs?.isReused });
  else if (wanted !== 'off') log.warn('the fast path stays off', { wanted, why: choice.why });
  return { choice, ...(programs === undefined ? {} : { programs }) };
}

/** A rule that makes the kernel load connection tracking. */
const TRACKING = `table inet ${NFT_TABLE} { chain forward { type filter hook forward priority 0; ct status assured accept; }; }`;

/**
 * Reports whether connection tracking has the setting. It comes with the module, which the kernel loads with the first rule that
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

async function tryWanted(
  wanted: WantedFastPath,
  { kernel, host }: Pick<FastPathDeps, 'kernel' | 'host'>,
): Promise<ProgramsTrial> {
  return wanted === 'flowtable' ? { problem: await tryFlowtable(kernel) } : host.openPrograms(kernel);
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
