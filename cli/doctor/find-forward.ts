import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { linkId } from '../node/element-id.ts';
import { ifKnown } from '../node/known.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { findFate, type Packet, type Step } from './find-fate.ts';
import { findIptablesRules, isReadByIptables } from './find-iptables-rules.ts';
import { findIptablesSteps } from './find-iptables-steps.ts';
import { findNftChains, type NftChain } from './find-nft-chains.ts';
import { findNftSteps } from './find-nft-steps.ts';
import { findOutline, type Outline } from './find-outline.ts';

/** Checks that no firewall of the node drops packets that are forwarded for Pods. */
export const FORWARD_CHECK: Check = {
  id: 'forward',
  looksAt: 'no firewall drops what is forwarded for Pods: iptables, firewalld, nftables',
  finds: ['forward-policy-drop'],
  judge: (facts) => {
    const { node, iptables } = facts;
    if (iptables.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(iptables.why);
    const trips = findTrips(findOutline(node));
    if (trips.length === 0) return skipped('there is no Pod with a host interface');
    const gates = [...iptablesGates(facts), ...nftGates(facts)];
    const findings = gates.flatMap((gate) => {
      const lost = trips.filter((trip) => gate.families.includes(trip.packet.family) && gate.drops(trip.packet));
      return lost.length === 0 ? [] : [told(gate, lost)];
    });
    return done(findings, [gates.length === 0 ? 'no chain forwards' : gates.map(({ place }) => place).join(', ')]);
  },
};

/** Path of a first packet: from a Pod or to a Pod. */
type Trip = { readonly what: string; readonly packet: Packet; readonly ifindex: number };

/** A base chain at the hook `forward`. */
type Gate = {
  readonly place: string;
  readonly families: readonly (4 | 6)[];
  drops(packet: Packet): boolean;
  readonly fix: readonly string[];
};

/** Returns the paths to test. One Pod of each address family represents all Pods. */
function findTrips({ primary, enis, pods }: Outline): readonly Trip[] {
  const uplinks = [primary, ...enis.map(({ link }) => link)];
  return ([4, 6] as const).flatMap((family): readonly Trip[] => {
    const isOf = (ip: string): boolean => ip.includes(':') === (family === 6);
    const pod = pods.find(({ link, ips }) => link !== undefined && ips.some(isOf));
    const ip = pod?.ips.find(isOf);
    if (pod?.link === undefined || ip === undefined) return [];
    const { ifindex, ifname, group } = pod.link;
    // Traffic within the VPC uses the Pod's own ENI.
    const own = enis.find(({ eniId, table }) =>
      pod.lease === undefined ? table === group : eniId === pod.lease.eniId,
    );
    const ways = (own?.link === undefined ? uplinks : [own.link]).flatMap((link) =>
      link === undefined ? [] : [link.ifname],
    );
    return [
      { what: `from ${ip}`, packet: { family, src: ip, iifs: [ifname], oifs: ways }, ifindex },
      { what: `to ${ip}`, packet: { family, dst: ip, iifs: ways, oifs: [ifname] }, ifindex },
    ];
  });
}

function told({ place, fix }: Gate, lost: readonly Trip[]): Finding {
  const what = `${place} drops new connections of Pods: ${lost.map((trip) => trip.what).join(', ')}`;
  const subjects = [...new Set(lost.map(({ ifindex }) => linkId(ifindex)))];
  // A firewall that drops only new connections from outside may be intended.
  const severity = lost.some(({ packet }) => packet.src !== undefined) ? 'error' : 'warning';
  return finding('forward-policy-drop', { what, fix, subjects, severity });
}

const POD_LINKS = ['-i', '-o'] as const;

function iptablesGates({ iptables }: DoctorFacts): readonly Gate[] {
  if (iptables.kind === 'unknown') return [];
  const { chains, rules } = findIptablesRules(iptables.value, []);
  return chains
    .filter(({ table, chain }) => table === 'filter' && chain === 'FORWARD')
    .map(({ backend, family, policy }): Gate => {
      const program = `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}`;
      const byChain = Map.groupBy(
        rules.filter((rule) => rule.backend === backend && rule.family === family && rule.table === 'filter'),
        ({ chain }) => chain,
      );
      return {
        place: `the chain FORWARD of ${program} (policy ${policy})`,
        families: [family],
        drops: (packet) =>
          isDropped('FORWARD', policy === 'DROP', (chain) => findIptablesSteps(byChain.get(chain) ?? [], packet)),
        fix: POD_LINKS.map((option) => `${program} -I FORWARD ${option} eni+ -j ACCEPT`),
      };
    });
}

function isDropped(base: string, isDropPolicy: boolean, stepsOf: (chain: string) => readonly Step[]): boolean {
  const fate = findFate(stepsOf, base);
  return fate === 'dropped' || (fate === 'through' && isDropPolicy);
}

function nftGates({ node, iptables }: DoctorFacts): readonly Gate[] {
  const objects = ifKnown(node.host.nft)?.objects ?? [];
  const chains = findNftChains(objects);
  return chains
    .filter(({ hook, type }) => hook === 'forward' && type === 'filter')
    .filter(({ family, table }) => !(family === 'inet' && table === NFT_TABLE))
    .filter((chain) => !isReadByIptables(iptables, chain))
    .map((base): Gate => {
      const { family, table, name, policy } = base;
      const ofTable = new Map(
        chains.filter((chain) => chain.family === family && chain.table === table).map((chain) => [chain.name, chain]),
      );
      return {
        place: `the chain ${name} of the nftables table ${family} ${table} (policy ${policy})`,
        families: family === 'inet' ? [4, 6] : [family === 'ip' ? 4 : 6],
        drops: (packet) =>
          isDropped(name, policy === 'drop', (chain) => findNftSteps(ofTable.get(chain)?.rules ?? [], packet)),
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
