import { ifKnown } from '../../../inspection/node/known.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { withNodeNetns } from '../../../inspection/node/with-node-netns.ts';
import { LibcError } from '../../../netlink/errno.ts';
import { type Monitor, type MonitorGroup, openMonitor, openMonitorIn } from '../../../netlink/monitor.ts';
import { type Netns, warmThreadPool } from '../../../netlink/netns.ts';
import { openRtnetlink, openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { renderWarning } from '../../output/render-error.ts';
import { jsonText } from '../../output/render-json.ts';
import type { WatchArgs } from './arguments.ts';
import { eventKindNumber } from './describe-agent-event.ts';
import { createEventDescriber } from './event-describer.ts';
import { followAgent } from './follow-agent.ts';
import { createNames, type WatchNames } from './names.ts';
import { renderWatchEvent } from './render-watch.ts';
import { KERNEL_KINDS, matchesFilter, type WatchEvent, type WatchFilter } from './watch-event.ts';

const ROUTE_GROUPS: readonly MonitorGroup[] = [
  'link',
  'neigh',
  'ipv4-ifaddr',
  'ipv4-route',
  'ipv4-rule',
  'ipv6-ifaddr',
  'ipv6-route',
  'ipv6-rule',
];

/** Follows kernel and agent until the signal. @throws UserError FORBIDDEN, NOT_FOUND, KERNEL */
export async function run(args: WatchArgs, context: CommandContext): Promise<ExitCode> {
  const { pod, eni, kind: kinds, all: isAll, output } = args;
  const filter: WatchFilter = {
    kinds,
    isAll,
    ...(pod === undefined ? {} : { pod }),
    ...(eni === undefined ? {} : { eni }),
  };
  const { stdout } = context;
  const print = (event: WatchEvent) => {
    if (!matchesFilter(event, filter)) return;
    // JSON allows characters that some terminals interpret.
    const json = () => (stdout.isTerminal ? plainText(jsonText(event)) : jsonText(event));
    stdout.write(output === 'json' ? `${json()}\n` : renderWatchEvent(event, stdout.isColored));
  };
  const names = createNames(() => ifKnown(readAgentFacts(context.global.stateDir))?.journal, context.clock);
  const hasKernel = kinds.length === 0 || kinds.some((kind) => KERNEL_KINDS.some((known) => known === kind));
  const hasAgent = kinds.length === 0 || kinds.some((kind) => eventKindNumber(kind) !== undefined);
  await Promise.all([
    hasKernel ? followKernel(context, names, print) : undefined,
    hasAgent ? followAgent(context, kinds, names, print) : undefined,
  ]);
  return EXIT.ok;
}

type Print = (event: WatchEvent) => void;

async function followKernel(context: CommandContext, names: WatchNames, print: Print): Promise<void> {
  await warmThreadPool();
  const describer = createEventDescriber(names);
  using monitor = withNodeNetns(context.global, (netns) => {
    const opened = openGroups(netns, context);
    // The list is read after the subscription: no link is missed in between.
    using rtnetlink = netns === undefined ? openRtnetlink() : openRtnetlinkIn(netns);
    for (const link of rtnetlink.link.list()) describer.trackLink(link);
    return opened;
  });
  const end = () => monitor.close();
  context.signal.addEventListener('abort', end, { once: true });
  if (context.signal.aborted) end();
  for await (const event of monitor) {
    const described = describer.describe(event, context.clock.nowMs());
    if (described !== undefined) print(described);
  }
}

function openGroups(netns: Netns | undefined, { stderr }: CommandContext): Monitor {
  const open = (groups: readonly MonitorGroup[]) =>
    netns === undefined ? openMonitor({ groups }) : openMonitorIn(netns, { groups });
  try {
    return open([...ROUTE_GROUPS, 'nftables']);
  } catch (error) {
    // Notifications of nftables require CAP_NET_ADMIN, and some kernels have no nftables.
    if (!(error instanceof LibcError)) throw error;
    stderr.write(renderWarning(`changes of nftables are not shown: ${error.code}`, stderr.isColored));
    return open(ROUTE_GROUPS);
  }
}
