import { canonicalAddress } from '../../dataplane/ip-prefix.ts';
import { masqueradeExempt } from '../../dataplane/masquerade-exempt.ts';
import { NFT_TABLE, TABLE_MAIN } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { finding } from '../catalogue/catalogue.ts';
import { noMasqueradeFinding } from '../faults/no-masquerade-finding.ts';
import type { ModelPod } from '../model/node-model.ts';
import { findMasqueraders } from '../node/find-masqueraders.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { hopOf, unknownHop } from './hop.ts';

/** Returns the link by which the node gets the packets of a Pod: the bridge that the Pod is on, or the Pod's own. */
export function ingressLink({ bridge }: ExplainContext, { gr, veth }: ModelPod): LinkMessage | undefined {
  return gr?.wiring === 'bridge' ? bridge.link : veth;
}

/** Returns the primary interface: by the agent's record, or by the default route of table main. */
export function primaryLink({ facts, node }: ExplainContext): LinkMessage | undefined {
  const { links, routes } = facts.host;
  const byDefault = routes.find(
    ({ table, dst, oif }) => table === TABLE_MAIN && dst === undefined && oif !== undefined,
  );
  const ifindex = node?.primary.ifindex ?? byDefault?.oif;
  return links.find((link) => link.ifindex === ifindex);
}

/** Shows the route of the VPC by which packets come to a GlobalRoute Pod. It is not read: the node has no rights for it. */
export function grRouteHop({ node }: ExplainContext, { gr, title }: ModelPod, ip: string): Hop {
  const cidr = gr?.cidr ?? '';
  const fields = {
    kind: 'cloud' as const,
    element: `cloud:${ip}`,
    title: `the VPC leads ${ip} by its route of ${cidr} to this node${node === undefined ? '' : `, ${node.primary.addresses[0] ?? ''}`}`,
  };
  const next = 'kubectl describe node shows it as NetworkUnavailable False; tke-eni cluster shows all';
  if (gr?.isFormer !== true) return unknownHop(fields, 'routes of the VPC are not read on a node', next);
  const found = finding('pod-cidr-changed', {
    what: `${cidr} of ${title} is no longer the podCIDR of this node: the VPC may lead it to another one`,
    fix: ['delete the Pod: its next one gets an address of the present podCIDR'],
    subjects: [fields.element],
  });
  return hopOf(fields, found);
}

/** Says which source a packet to outside of the node has, and why; `isKept`: that of the Pod. */
export function masqueradeHop(
  context: ExplainContext,
  { gr }: ModelPod,
  src: string,
  dst: string,
): { readonly hop: Hop; readonly isKept: boolean } {
  const { node, facts } = context;
  const fields = { kind: 'nft' as const, element: `nft:${NFT_TABLE}` };
  const own = node?.primary.addresses.find((ip) => !canonicalAddress(ip).includes(':')) ?? 'the address of the node';
  const masquerade = node?.bridge?.masquerade;
  if (node !== undefined && masquerade !== undefined) {
    const kept = [...node.podCidrs.map(({ cidr }) => cidr), ...masquerade.exempt].find((cidr) =>
      prefixContains(cidr, dst),
    );
    const title =
      kept === undefined
        ? `masquerade: the source becomes ${own}, the node's`
        : `no masquerade: the source stays ${src}, as ${dst} is in ${kept}`;
    const why = `outside of the VPC no route leads back to ${gr?.cidr ?? src}`;
    const hop = hopOf({ ...fields, title, details: [kept === undefined ? why : undefined] });
    return { hop, isKept: kept !== undefined };
  }
  const isExempt = masqueradeExempt(node?.vpcCidrs ?? []).some((cidr) => prefixContains(cidr, dst));
  const [other] = findMasqueraders(facts.host);
  if (other !== undefined) {
    const title = `masquerade is left to ${other}: the source becomes ${own}, the node's, but for its exceptions`;
    const hop = hopOf({ ...fields, title, details: ['iptables -t nat -S shows its exceptions'] });
    return { hop, isKept: isExempt };
  }
  const title = `no masquerade: the source stays ${src}`;
  if (node?.bridge === undefined || isExempt) return { hop: hopOf({ ...fields, title }), isKept: true };
  return { hop: hopOf({ ...fields, title }, noMasqueradeFinding()), isKept: true };
}
