import { connect } from 'node:net';
import { isHostVethName, parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import { PRIORITY, RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { startTimer } from '../../runtime/clock.ts';
import { AgentError } from '../api/agent-error.ts';
import type { HostDump } from './read-evidence.ts';

/** Where the product's agent serves its plugins. */
const PRODUCT = { host: '127.0.0.1', port: 61_677 } as const;
const PROBE_MS = 2_000;
const SHOWN = 3;
const CURE = 'to start all the same, set --beside-product=ignore';

/**
 * Checks that the product's own agent neither serves on this node nor has Pods there: its garbage collection and ours would
 * take each other's Pods for gone ones. Changes nothing, and is called before anything is changed.
 * @param address where the product would answer
 * @throws AgentError ANOTHER_AGENT
 */
export async function refuseProduct(
  dump: () => HostDump,
  address: { host: string; port: number } = PRODUCT,
): Promise<void> {
  if (await answers(address))
    throw new AgentError(
      'ANOTHER_AGENT',
      `the product's own agent, or another program, answers on ${address.host}:${address.port}: two agents of one node would undo each other's work. Take the product's DaemonSet off this node first; ${CURE}`,
    );
  const ips = findProductPods(dump());
  if (ips.length === 0) return;
  const shown =
    ips.length > SHOWN ? `${ips.slice(0, SHOWN).join(', ')} and ${ips.length - SHOWN} more` : ips.join(', ');
  throw new AgentError(
    'ANOTHER_AGENT',
    `Pods of the product's own agent live on this node (${shown}): their rules, 512 and 1536, are not ours. Drain the node first; ${CURE}`,
  );
}

/** Reports whether something accepts a connection; what neither accepts nor refuses in time counts as there. */
async function answers(address: { host: string; port: number }): Promise<boolean> {
  const outcome = Promise.withResolvers<boolean>();
  const probe = connect(address);
  const timer = startTimer(() => outcome.resolve(true), PROBE_MS);
  probe.once('connect', () => outcome.resolve(true));
  probe.once('error', () => outcome.resolve(false));
  try {
    return await outcome.promise;
  } finally {
    timer.cancel();
    probe.destroy();
  }
}

/**
 * Finds addresses of Pods that the product's agent has wired: both of its rules, and a host route to a link with a name of its
 * form that has no alias of ours. Nothing of it has our protocol. What an ended Pod left has no link, and counts for nothing.
 */
export function findProductPods({ links, routes, rules }: Readonly<HostDump>): readonly string[] {
  const foreign = rules.filter(({ protocol }) => protocol !== RTPROT_TKE_ENI);
  const to = foreign.filter(({ priority, table }) => priority === PRIORITY.toPod && table === TABLE_MAIN);
  const from = new Set(
    foreign
      .filter(({ priority, table }) => priority === PRIORITY.fromPod && table !== TABLE_MAIN)
      .map(({ src }) => src),
  );
  const isOfProduct = (ifindex: number | undefined): boolean =>
    links.some(
      (link) =>
        link.ifindex === ifindex && isHostVethName(link.ifname) && parseHostVethAlias(link.ifalias ?? '') === undefined,
    );
  const wired = to.filter(
    ({ dst }) =>
      dst !== undefined &&
      from.has(dst) &&
      routes.some((route) => route.dst === dst && route.protocol !== RTPROT_TKE_ENI && isOfProduct(route.oif)),
  );
  return [...new Set(wired.map(({ dst }) => (dst ?? '').split('/')[0] ?? ''))].sort();
}
