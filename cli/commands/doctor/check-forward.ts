import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId, sysctlId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { findRewriteFault } from '../../../inspection/faults/find-rewrite-fault.ts';
import { notEvaluatedFinding } from '../../../inspection/faults/not-evaluated-finding.ts';
import { buildFirewallChains, type FirewallChain } from '../../../inspection/firewall/build-firewall-chains.ts';
import type { Packet } from '../../../inspection/firewall/evaluate-chain.ts';
import { dropsUnmarkedWayBack, evaluateFirewallChain } from '../../../inspection/firewall/evaluate-firewall-chain.ts';
import type { NodeModel } from '../../../inspection/model/node-model.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { commentOutOverride, findBootSetting, OUR_SYSCTL_FILE } from './find-boot-setting.ts';

/** Checks that no firewall of the node drops packets of Pods, wherever they pass one. */
export const FORWARD_CHECK: Check = {
  id: 'forward',
  scope: 'no firewall drops packets of Pods: iptables, firewalld, nftables',
  finds: ['forward-policy-drop', 'firewall-not-evaluated', 'rpfilter-without-mark', 'packet-rewritten'],
  evaluate: (facts) => {
    const { model, node, iptables } = facts;
    if (iptables.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(iptables.why);
    const outline = model;
    const trips = buildTrips(outline);
    if (trips.length === 0) return skipped('there is no Pod with a host interface');
    const objects = ifKnown(node.host.nft)?.objects ?? [];
    const { queueListeners } = node.host;
    const chains = buildFirewallChains({ objects, iptables, queueListeners });
    const findings = chains.flatMap((chain) => {
      const lost = lostBy(chain, trips);
      if (lost.length > 0) return [dropFinding(chain, lost)];
      const tried = triedOf(chain, trips);
      const rewritten = tried.flatMap(({ packet }) => findRewriteFault(chain, packet) ?? []);
      return [...openFindings(chain, tried), ...rewritten.slice(0, 1)];
    });
    const forwarding = chains.filter(({ hook }) => hook === 'forward').map(({ title }) => title);
    return done(findings, [forwarding.length === 0 ? 'no chain forwards' : forwarding.join(', ')]);
  },
};

/** Path of a packet: from a Pod or to a Pod. */
type Trip = {
  readonly what: string;
  readonly packet: Packet;
  readonly ifindex: number;
  /** Whether its Pod is the first of its family: others are tried only where the first loses nothing. */
  readonly isFirst: boolean;
};

/** Returns the paths to test, two for each Pod and address. */
function buildTrips({ primary, enis, pods, ruleMode }: NodeModel): readonly Trip[] {
  const uplinks = [primary, ...enis.map(({ link }) => link)];
  return ([4, 6] as const).flatMap((family): readonly Trip[] => {
    const isOf = (ip: string): boolean => ip.includes(':') === (family === 6);
    return pods
      .flatMap(({ hostLink: link, ips, lease }) => {
        const ip = ips.find(isOf);
        return link === undefined || ip === undefined ? [] : [{ link, ip, lease }];
      })
      .flatMap(({ link: { ifindex, ifname, group }, ip, lease }, index) => {
        // Traffic within the VPC uses the Pod's own ENI.
        const podEni = enis.find(({ eniId, table }) => (lease === undefined ? table === group : eniId === lease.eniId));
        const interfaces = (podEni?.link === undefined ? uplinks : [podEni.link]).flatMap((each) =>
          each === undefined ? [] : [each.ifname],
        );
        const isFirst = index === 0;
        const isMarkedWayBack = ruleMode === 'compact' && podEni?.link !== undefined;
        const toPod = {
          family,
          dst: ip,
          iifs: interfaces,
          oifs: [ifname],
          ...(isMarkedWayBack && { isMarkedWayBack }),
        };
        return [
          { what: `from ${ip}`, packet: { family, src: ip, iifs: [ifname], oifs: interfaces }, ifindex, isFirst },
          { what: `to ${ip}`, packet: toPod, ifindex, isFirst },
        ];
      });
  });
}

/** Most evaluations of rules for one chain, so that it takes no seconds. Paths beyond it are not tried. */
const MAX_EVALUATIONS = 200_000;

/** Returns the paths that a chain loses: of the first Pod of each family, or else of the first Pod that loses one. */
function lostBy(chain: FirewallChain, trips: readonly Trip[]): readonly Trip[] {
  const first = trips.filter((trip) => trip.isFirst && isLost(chain, trip));
  if (first.length > 0) return first;
  const other = triedOf(chain, trips).find((trip) => !trip.isFirst && isLost(chain, trip));
  return other === undefined ? [] : [other];
}

/** Returns the paths that may be tried for a chain. */
function triedOf({ ruleCount }: FirewallChain, trips: readonly Trip[]): readonly Trip[] {
  return trips.slice(0, Math.ceil(MAX_EVALUATIONS / Math.max(1, ruleCount)));
}

function isLost(chain: FirewallChain, { packet }: Trip, isEstablished = false): boolean {
  return evaluateFirewallChain(chain, { ...packet, isEstablished }).outcome === 'dropped';
}

/** Describes what a chain may drop by conditions that are not evaluated: of new connections, or else of those that are known. */
function openFindings(chain: FirewallChain, tried: readonly Trip[]): readonly Finding[] {
  for (const isEstablished of [false, true]) {
    const open = tried.flatMap(({ what, packet }) => {
      const { notEvaluated } = evaluateFirewallChain(chain, { ...packet, isEstablished });
      return notEvaluated.length === 0 ? [] : [{ what, notEvaluated }];
    });
    const conditions = [...new Set(open.flatMap(({ notEvaluated }) => notEvaluated))];
    const [first] = open;
    if (first === undefined) continue;
    const others = open.length > 1 ? ` and ${open.length - 1} more` : '';
    return [notEvaluatedFinding(chain, `packets of Pods (${first.what}${others})`, conditions)];
  }
  return [];
}

/** Describes what a chain drops. It is an error where Pods reach nothing by it, or where even answers are dropped. */
function dropFinding(chain: FirewallChain, lost: readonly Trip[]): Finding {
  const { title, hook, show } = chain;
  const what = `${title} drops new connections of Pods: ${lost.map((trip) => trip.what).join(', ')}`;
  const subjects = [...new Set(lost.map(({ ifindex }) => linkId(ifindex)))];
  const unmarked = lost.filter(({ packet }) => dropsUnmarkedWayBack(chain, packet));
  if (unmarked.length > 0) {
    const lostTo = unmarked.map((trip) => trip.what).join(', ');
    const how = `${title} drops what comes in by an ENI, because it looks for the way back without the mark: ${lostTo}`;
    return finding('rpfilter-without-mark', { what: how, fix: [show], subjects });
  }
  // A firewall that drops only new connections, from outside or to the node, may be intended.
  const cutsPods = hook !== 'input' && lost.some(({ packet }) => packet.src !== undefined);
  const dropsAnswers = hook !== 'forward' && lost.some((trip) => isLost(chain, trip, true));
  const severity = cutsPods || dropsAnswers ? 'error' : 'warning';
  const fixes = lost.map(({ packet }) => chain.fix(packet));
  const fix = fixes.every(({ length }) => length > 0) ? [...new Set(fixes.flat())] : [show];
  return finding('forward-policy-drop', { what, fix, subjects, severity });
}

const IPV4 = 'net.ipv4.ip_forward';
const IPV6 = 'net.ipv6.conf.all.forwarding';

/** Checks that the node forwards packets, now and after the next boot. */
export const FORWARDING_CHECK: Check = {
  id: 'ip-forward',
  scope: 'the node forwards IPv4, and IPv6 where Pods have it, now and at boot',
  finds: ['ip-forward-off', 'ip-forward-at-boot', 'ipv6-disabled'],
  evaluate: (facts) => {
    const { sysctls } = facts.node.host;
    if (sysctls.get(IPV4) === undefined) return skipped('net.ipv4.ip_forward cannot be read; run as root');
    const names = facts.model.families.has(6) ? [IPV4, IPV6] : [IPV4];
    return done([
      ...names.flatMap((name) => offAtBoot(facts, name)),
      ...(names.includes(IPV6) ? ipv6Disabled(facts) : []),
    ]);
  },
};

function offAtBoot({ sysctlFiles }: DoctorFacts, name: string): readonly Finding[] {
  if (sysctlFiles.kind === 'unknown') return [];
  // conf.all.forwarding is another name of ip_forward.
  const names = name === IPV4 ? [IPV4, 'net.ipv4.conf.all.forwarding'] : [name];
  return names.flatMap((each): readonly Finding[] => {
    const setting = findBootSetting(sysctlFiles.value, each);
    if (setting?.value !== '0') return [];
    const what = `${setting.path} sets ${setting.key} to 0 at boot`;
    const fix = [
      ...commentOutOverride(setting),
      `printf '${each} = 1\\n' >>${OUR_SYSCTL_FILE}`,
      `sysctl -p ${OUR_SYSCTL_FILE}`,
    ];
    return [finding('ip-forward-at-boot', { what, fix, subjects: [sysctlId(each)] })];
  });
}

function ipv6Disabled({ node }: DoctorFacts): readonly Finding[] {
  const name = 'net.ipv6.conf.all.disable_ipv6';
  if (node.host.sysctls.get(name) !== '1') return [];
  return [finding('ipv6-disabled', { what: `${name} is 1`, fix: [`sysctl -w ${name}=0`], subjects: [sysctlId(name)] })];
}
