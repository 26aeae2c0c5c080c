import { isInCidr } from '../../../crd/ip-text.ts';
import { networkPrefix } from '../../../dataplane/ip-prefix.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { nodeNameOf } from './agent-pod-command.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { buildGrOutline, type GrOutline, NO_GR_PODS } from './gr-outline.ts';

/** Checks the podCIDR of a node with GlobalRoute Pods: there is one, Pods live in it, and nothing else has its addresses. */
export const POD_CIDR_CHECK: Check = {
  id: 'pod-cidr',
  scope: 'GlobalRoute Pods: the node has a podCIDR, its Pods live in it, no other network overlaps it',
  finds: ['pod-cidr-missing', 'pod-cidr-changed', 'pod-cidr-overlap'],
  evaluate: (facts) => {
    const outline = buildGrOutline(facts);
    if (outline === undefined) return skipped(NO_GR_PODS);
    const { blocks } = outline;
    if (blocks === undefined) return skipped('the podCIDR of the node is not known without the agent and its record');
    const overlapping = overlaps(facts, blocks);
    const refused = overlapping.length > 0 ? [] : refusedByAgent(facts);
    const findings = [...missing(facts, outline), ...changed(outline, blocks), ...overlapping, ...refused];
    return done(findings, [`${blocks.join(', ') || 'no podCIDR'}, ${outline.leases.length} Pods`]);
  },
};

function missing({ node }: DoctorFacts, { blocks, isDefault }: GrOutline): readonly Finding[] {
  if (!isDefault || blocks?.length !== 0) return [];
  return [
    finding('pod-cidr-missing', {
      what: 'the default network is tke-bridge, and the Node has no podCIDR: ADDs of its Pods fail with code 11',
      fix: [`kubectl get node ${nodeNameOf(node)} -o jsonpath='{.spec.podCIDRs}'`, 'tke-eni cluster'],
      subjects: [],
    }),
  ];
}

/** Number of Pods that are named. */
const MAX_NAMED = 5;

function changed({ leases }: GrOutline, blocks: readonly string[]): readonly Finding[] {
  const former = leases.filter(({ block, state }) => state === 'active' && !blocks.includes(block.cidr));
  if (former.length === 0 || blocks.length === 0) return [];
  const names = former.map(({ podNamespace, podName, containerId }) =>
    podName === '' ? containerId.slice(0, 13) : `${podNamespace}/${podName}`,
  );
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  const cidrs = [...new Set(former.map(({ block }) => block.cidr))];
  return [
    finding('pod-cidr-changed', {
      what: `${former.length} Pods have addresses of ${cidrs.join(', ')}, which ${cidrs.length === 1 ? 'is' : 'are'} no longer of this node (${blocks.join(', ')}): ${names.slice(0, MAX_NAMED).join(', ')}${more}`,
      fix: former
        .slice(0, MAX_NAMED)
        .flatMap(({ podNamespace, podName }) =>
          podName === '' ? [] : [`kubectl -n ${podNamespace} delete pod ${podName}`],
        ),
      subjects: former.map(({ containerId, ifName }) => podId(`${containerId}/${ifName}`)),
    }),
  ];
}

/** The agent knows of more networks than this node shows, and gives no address of a block that overlaps one. */
function refusedByAgent({ status }: DoctorFacts): readonly Finding[] {
  const problem = ifKnown(status)?.bridge?.problem ?? '';
  if (!/^podCIDR .* overlaps /.test(problem)) return [];
  return [finding('pod-cidr-overlap', { what: problem, fix: OVERLAP_FIX, subjects: [] })];
}

const OVERLAP_FIX = [
  'choose another --cluster-cidr, or move the other network',
  'drain the node, delete its Node, and let it register again',
] as const;

/** A network that a block may not overlap. */
type OtherNetwork = { readonly cidr: string; readonly what: string; readonly subjects: readonly string[] };

function overlaps(facts: DoctorFacts, blocks: readonly string[]): readonly Finding[] {
  const others = otherNetworks(facts);
  return blocks.flatMap((block) => {
    const overlapping = others.filter(({ cidr }) => isOverlap(block, cidr));
    if (overlapping.length === 0) return [];
    const names = overlapping.slice(0, MAX_NAMED).map(({ cidr, what }) => `${cidr} (${what})`);
    const more = overlapping.length > MAX_NAMED ? `, and ${overlapping.length - MAX_NAMED} more` : '';
    return [
      finding('pod-cidr-overlap', {
        what: `podCIDR ${block} overlaps ${names.join(', ')}${more}`,
        fix: OVERLAP_FIX,
        subjects: overlapping.flatMap(({ subjects }) => subjects),
      }),
    ];
  });
}

function otherNetworks({ node }: DoctorFacts): readonly OtherNetwork[] {
  const agent = ifKnown(node.agent);
  const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
  const subnets = (agent?.journal.supply?.enis ?? []).flatMap(({ eniId, primary }) =>
    primary.map(({ subnetCidr }) => ({
      cidr: networkPrefix(subnetCidr),
      what: `the subnet of ${eniId}`,
      subjects: [],
    })),
  );
  const bridge = planned?.bridge?.name ?? 'cbr0';
  const connected = node.host.addresses
    .filter(({ family, prefixlen }) => family === AF_INET && prefixlen < 32)
    .flatMap(({ local, address, prefixlen, ifindex }) => {
      const ifname = node.host.links.find((link) => link.ifindex === ifindex)?.ifname ?? `if${ifindex}`;
      if (ifname === bridge || ifname === 'lo') return [];
      const cidr = networkPrefix(`${local ?? address}/${prefixlen}`);
      return [{ cidr, what: `the network of ${ifname} of this node`, subjects: [linkId(ifindex)] }];
    });
  const services = (planned?.serviceCidrs ?? []).map((cidr) => ({ cidr, what: 'a range of Services', subjects: [] }));
  const seen = new Set<string>();
  return [...subnets, ...services, ...connected].filter(({ cidr }) => !seen.has(cidr) && seen.add(cidr) !== undefined);
}

function isOverlap(a: string, b: string): boolean {
  const [baseOfA = '', baseOfB = ''] = [a, b].map((cidr) => cidr.split('/')[0]);
  if (baseOfA.includes(':') || baseOfB.includes(':')) return false;
  return isInCidr(baseOfA, b) || isInCidr(baseOfB, a);
}
