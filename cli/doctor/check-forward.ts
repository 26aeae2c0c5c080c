import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { linkId } from '../node/element-id.ts';
import { ifKnown } from '../node/known.ts';
import { buildOutline, type Outline } from './build-outline.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { evaluateChain, type Packet, type RuleStep } from './evaluate-chain.ts';
import { evaluateIptablesRules } from './evaluate-iptables-rules.ts';
import { evaluateNftRules } from './evaluate-nft-rules.ts';
import { isReadByIptables, parseIptablesRules } from './parse-iptables-rules.ts';
import { type NftChain, parseNftChains } from './parse-nft-chains.ts';

/** Checks that no firewall of the node drops packets that are forwarded for Pods. */
export const FORWARD_CHECK: Check = {
  id: 'forward',
  scope: 'no firewall drops what is forwarded for Pods: iptables, firewalld, nftables',
  finds: ['forward-policy-drop'],
  evaluate: (facts) => {
    const { node, iptables } = facts;
    if (iptables.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(iptables.why);
    const trips = buildTrips(buildOutline(node));
    if (trips.length === 0) return skipped('there is no Pod with a host interface');
    const chains = [...iptablesForwardChains(facts), ...nftForwardChains(facts)];
    const findings = chains.flatMap((chain) => {
      const lost = trips.filter((trip) => chain.families.includes(trip.packet.family) && chain.drops(trip.packet));
      return lost.length === 0 ? [] : [forwardFinding(chain, lost)];
    });
    return done(findings, [chains.length === 0 ? 'no chain forwards' : chains.map(({ title }) => title).join(', ')]);
  },
};

/** Path of a first packet: from a Pod or to a Pod. */
type Trip = { readonly what: string; readonly packet: Packet; readonly ifindex: number };

/** A base chain at the hook `forward`. */
type ForwardChain = {
  readonly title: string;
  readonly families: readonly (4 | 6)[];
  drops(packet: Packet): boolean;
  readonly fix: readonly string[];
};

/** Returns the paths to test. One Pod of each address family represents all Pods. */
function buildTrips({ primary, enis, pods }: Outline): readonly Trip[] {
  const uplinks = [primary, ...enis.map(({ link }) => link)];
  return ([4, 6] as const).flatMap((family): readonly Trip[] => {
    const isOf = (ip: string): boolean => ip.includes(':') === (family === 6);
    const pod = pods.find(({ link, ips }) => link !== undefined && ips.some(isOf));
    const ip = pod?.ips.find(isOf);
    if (pod?.link === undefined || ip === undefined) return [];
    const { ifindex, ifname, group } = pod.link;
    // Traffic within the VPC uses the Pod's own ENI.
    const podEni = enis.find(({ eniId, table }) =>
      pod.lease === undefined ? table === group : eniId === pod.lease.eniId,
    );
    const interfaces = (podEni?.link === undefined ? uplinks : [podEni.link]).flatMap((link) =>
      link === undefined ? [] : [link.ifname],
    );
    return [
      { what: `from ${ip}`, packet: { family, src: ip, iifs: [ifname], oifs: interfaces }, ifindex },
      { what: `to ${ip}`, packet: { family, dst: ip, iifs: interfaces, oifs: [ifname] }, ifindex },
    ];
  });
}

function forwardFinding({ title, fix }: ForwardChain, lost: readonly Trip[]): Finding {
  const what = `${title} drops new connections of Pods: ${lost.map((trip) => trip.what).join(', ')}`;
  const subjects = [...new Set(lost.map(({ ifindex }) => linkId(ifindex)))];
  // A firewall that drops only new connections from outside may be intended.
  const severity = lost.some(({ packet }) => packet.src !== undefined) ? 'error' : 'warning';
  return finding('forward-policy-drop', { what, fix, subjects, severity });
}

const POD_LINKS = ['-i', '-o'] as const;

function iptablesForwardChains({ iptables }: DoctorFacts): readonly ForwardChain[] {
  if (iptables.kind === 'unknown') return [];
  const { chains, rules } = parseIptablesRules(iptables.value, []);
  return chains
    .filter(({ table, chain }) => table === 'filter' && chain === 'FORWARD')
    .map(({ backend, family, policy }): ForwardChain => {
      const program = `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}`;
      const byChain = Map.groupBy(
        rules.filter((rule) => rule.backend === backend && rule.family === family && rule.table === 'filter'),
        ({ chain }) => chain,
      );
      return {
        title: `the chain FORWARD of ${program} (policy ${policy})`,
        families: [family],
        drops: (packet) =>
          isDropped('FORWARD', policy === 'DROP', (chain) => evaluateIptablesRules(byChain.get(chain) ?? [], packet)),
        fix: POD_LINKS.map((option) => `${program} -I FORWARD ${option} eni+ -j ACCEPT`),
      };
    });
}

function isDropped(base: string, isDropPolicy: boolean, stepsOf: (chain: string) => readonly RuleStep[]): boolean {
  const outcome = evaluateChain(stepsOf, base);
  return outcome === 'dropped' || (outcome === 'through' && isDropPolicy);
}

function nftForwardChains({ node, iptables }: DoctorFacts): readonly ForwardChain[] {
  const objects = ifKnown(node.host.nft)?.objects ?? [];
  const chains = parseNftChains(objects);
  return chains
    .filter(({ hook, type }) => hook === 'forward' && type === 'filter')
    .filter(({ family, table }) => !(family === 'inet' && table === NFT_TABLE))
    .filter((chain) => !isReadByIptables(iptables, chain))
    .map((base): ForwardChain => {
      const { family, table, name, policy } = base;
      const ofTable = new Map(
        chains.filter((chain) => chain.family === family && chain.table === table).map((chain) => [chain.name, chain]),
      );
      return {
        title: `the chain ${name} of the nftables table ${family} ${table} (policy ${policy})`,
        families: family === 'inet' ? [4, 6] : [family === 'ip' ? 4 : 6],
        drops: (packet) =>
          isDropped(name, policy === 'drop', (chain) => evaluateNftRules(ofTable.get(chain)?.rules ?? [], packet)),
        fix: table === 'firewalld' ? FIREWALLD : nftFix(base),
      };
    });
}

/**
 * firewalld owns its nftables table and rewrites it, so rules are added by its own commands. @see firewalld.policies(5)
 */
const FIREWALLD = [
  'firewall-cmd --permanent --new-policy tke-eni',
  'firewall-cmd --permanent --policy tke-eni --add-ingress-zone ANY',
  'firewall-cmd --permanent --policy tke-eni --add-egress-zone ANY',
  'firewall-cmd --permanent --policy tke-eni --set-target ACCEPT',
  'firewall-cmd --reload',
];

function nftFix({ family, table, name }: NftChain): readonly string[] {
  return ['iifname', 'oifname'].map((key) => `nft insert rule ${family} ${table} ${name} ${key} '"eni*"' accept`);
}
