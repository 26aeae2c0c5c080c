import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { buildGrOutline, type GrOutline, NO_GR_PODS } from './gr-outline.ts';

/** Checks that the bridge has ports of our Pods alone, and that host-local records no addresses of other Pods. */
export const BRIDGE_PORTS_CHECK: Check = {
  id: 'bridge-ports',
  scope: 'GlobalRoute Pods: no Pod of another bridge plugin is on the bridge or has an address of the podCIDR',
  finds: ['bridge-foreign-port', 'host-local-left'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { bridge } = outline;
    const foreign = foreignPorts(facts, outline);
    return done(
      [...foreignFinding(outline, foreign), ...leftFiles(facts, outline)],
      [bridge === undefined ? 'there is no bridge' : `${bridge.ifname}: ${portsOf(facts, outline).length} ports`],
    );
  },
};

type Port = DoctorFacts['node']['host']['links'][number];

function portsOf({ node }: DoctorFacts, { bridge }: GrOutline): readonly Port[] {
  return bridge === undefined ? [] : node.host.links.filter(({ master }) => master === bridge.ifindex);
}

function foreignPorts(facts: DoctorFacts, outline: GrOutline): readonly Port[] {
  const ours = new Set(facts.node.pods.map(({ hostIfindex }) => hostIfindex));
  return portsOf(facts, outline).filter(({ ifindex }) => !ours.has(ifindex));
}

/** Number of ports and files that are named. */
const MAX_NAMED = 5;

function foreignFinding({ bridge, isDefault }: GrOutline, ports: readonly Port[]): readonly Finding[] {
  if (ports.length === 0 || bridge === undefined) return [];
  const names = listText(ports.map(({ ifname }) => ifname));
  return [
    finding('bridge-foreign-port', {
      what: `${ports.length} ports of ${bridge.ifname} are not of our Pods: ${names}`,
      fix: [
        `bridge link show | grep 'master ${bridge.ifname}'`,
        'restart the agent, which takes them over; or drain the node',
      ],
      subjects: ports.map(({ ifindex }) => linkId(ifindex)),
      ...(isDefault ? { severity: 'error' as const } : {}),
    }),
  ];
}

/** A file that names the sandbox of a lease, with the address of that lease, is no leftover. */
function leftFiles({ hostLocal }: DoctorFacts, { leases }: GrOutline): readonly Finding[] {
  if (hostLocal.kind === 'unknown') return [];
  const owned = new Set(leases.flatMap((lease) => lease.addresses.map(({ ip }) => `${ip} ${lease.containerId}`)));
  const left = hostLocal.value.filter(({ ip, containerId }) => !owned.has(`${ip} ${containerId}`));
  if (left.length === 0) return [];
  const taken = left.filter(({ ip }) => leases.some(({ addresses }) => addresses.some((address) => address.ip === ip)));
  return [
    finding('host-local-left', {
      what: `host-local records ${left.length} addresses for sandboxes that the agent has no lease of: ${listText(left.map(({ ip }) => ip))}`,
      fix: [
        'crictl pods -q --no-trunc   # which of the sandboxes in these files live',
        ...left.slice(0, MAX_NAMED).map(({ path }) => `rm ${path}`),
      ],
      subjects: [],
      // Then two sandboxes have one address by the records.
      ...(taken.length > 0 ? { severity: 'error' as const } : {}),
    }),
  ];
}

function listText(names: readonly string[]): string {
  return `${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''}`;
}
