import { eniId, linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import { type Finding, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import { findLinkObstacles, type NamedLink } from '../../../inspection/faults/find-link-obstacles.ts';
import { findXfrmFault } from '../../../inspection/faults/find-xfrm-fault.ts';
import type { ModelEni } from '../../../inspection/model/node-model.ts';
import type { NodePod } from '../../../inspection/node/join-pods.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { HostFacts } from '../../../inspection/node/node-facts.ts';
import { type Check, done, skipped } from './check.ts';

/** Checks that nothing of other programs takes packets on the links of ENIs and Pods. */
export const TRAFFIC_CHECK: Check = {
  id: 'traffic',
  scope: 'no XDP program, traffic filter, discipline, link above or IPsec policy takes packets of Pods',
  finds: ['link-xdp', 'link-passthru', 'link-tc', 'link-qdisc', 'xfrm-policy'],
  evaluate: ({ model, node }) => {
    const { enis, pods } = model;
    const { qdiscs, policies } = node.host.traffic;
    if (qdiscs.kind === 'unknown' && policies.kind === 'unknown') return skipped(`${qdiscs.why}; ${qdiscs.next}`);
    const links = [...enis.flatMap(ofEni), ...pods.flatMap(ofPod)];
    return done(
      uniqueFindings([
        ...links.flatMap((named) => findLinkObstacles(node.host, named, pods)),
        ...pods.flatMap(insideOf),
        ...pods.flatMap(({ ips }) => ips.flatMap((ip) => onNode(node.host, ip))),
      ]),
      [`${links.length} links`],
    );
  },
};

function onNode(host: HostFacts, ip: string): readonly Finding[] {
  const packets = [
    { dir: 'fwd', src: ip },
    { dir: 'fwd', dst: ip },
    { dir: 'out', src: ip },
    { dir: 'out', dst: ip },
    { dir: 'in', src: ip },
  ] as const;
  return packets.flatMap((packet) => findXfrmFault(host, packet, 'the node') ?? []);
}

function ofEni({ link, eniId: id, table }: ModelEni): readonly NamedLink[] {
  if (link === undefined) return [];
  return [{ link, title: link.ifname, subjects: [linkId(link.ifindex), eniId(id ?? String(table))], prefix: '' }];
}

function ofPod({ hostLink: link, pod, name: title }: NodePod): readonly NamedLink[] {
  if (link === undefined) return [];
  return [{ link, title: `${link.ifname} of ${title}`, subjects: [linkId(link.ifindex), podId(pod.key)], prefix: '' }];
}

function insideOf({ pod, ifName, podLink: link, name: title, lease, ips }: NodePod): readonly Finding[] {
  const netns = ifKnown(pod.inside);
  if (netns === undefined || link === undefined) return [];
  const prefix = `nsenter --net=${lease?.netns ?? '<netns>'} `;
  const subjects = [linkId(link.ifindex, pod.key), podId(pod.key)];
  return [
    ...findLinkObstacles(netns, { link, title: `${ifName} in ${title}`, subjects, prefix }),
    ...ips.flatMap((ip) => findXfrmFault(netns, { dir: 'out', src: ip }, title, prefix) ?? []),
    ...ips.flatMap((ip) => findXfrmFault(netns, { dir: 'in', dst: ip }, title, prefix) ?? []),
  ];
}
