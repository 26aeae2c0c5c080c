import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { linkId, podId } from '../node/element-id.ts';
import { ifKnown } from '../node/known.ts';
import { type Check, done, skipped } from './check.ts';
import { type EniOutline, findOutline, type PodOutline } from './find-outline.ts';

/** Looks at the MTUs that a packet meets: in the Pod, on the host interface, ENI, primary interface. */
export const MTU_CHECK: Check = {
  id: 'mtu',
  looksAt: 'MTU of Pods, their host interfaces, ENIs and the primary interface',
  finds: ['mtu-mismatch', 'mtu-path'],
  judge: ({ node }) => {
    const { primary, enis, pods } = findOutline(node);
    if (enis.length === 0 && pods.length === 0) return skipped('there are no ENIs and no Pods');
    const present = enis.flatMap(({ link }) => (link === undefined ? [] : [link]));
    const different = primary === undefined ? [] : present.filter(({ mtu }) => mtu !== primary.mtu);
    const path =
      primary === undefined || different.length === 0
        ? []
        : [
            finding('mtu-path', {
              what: `${different.map(({ ifname, mtu }) => `${ifname} has MTU ${mtu}`).join(', ')}, the primary ${primary.ifname} ${primary.mtu}`,
              fix: [`ip link set ${different[0]?.ifname} mtu ${primary.mtu}`],
              subjects: [primary, ...different].map(({ ifindex }) => linkId(ifindex)),
            }),
          ];
    const mtus = [...new Set([...(primary === undefined ? [] : [primary.mtu]), ...present.map(({ mtu }) => mtu)])];
    return done([...pods.flatMap((pod) => ofPod(pod, enis)), ...path], [`MTU ${mtus.join(', ')}`]);
  },
};

function ofPod({ pod, lease, link, title }: PodOutline, enis: readonly EniOutline[]): readonly Finding[] {
  if (link === undefined) return [];
  const subjects = [podId(pod.key), linkId(link.ifindex)];
  const ifName = pod.key.slice(pod.key.indexOf('/') + 1);
  const inside = ifKnown(pod.inside)?.links.find(({ ifname }) => ifname === ifName);
  const eni = enis.find(({ eniId, table }) =>
    lease === undefined ? table === link.group : eniId === lease.eniId,
  )?.link;
  const found: Finding[] = [];
  if (inside !== undefined && inside.mtu !== link.mtu) {
    const what = `${ifName} in ${title} has MTU ${inside.mtu}, its host interface ${link.ifname} ${link.mtu}`;
    const fix = ['tke-eni repair', `ip link set ${link.ifname} mtu ${inside.mtu}`];
    found.push(finding('mtu-mismatch', { what, fix, subjects }));
  }
  const largest = Math.max(link.mtu, inside?.mtu ?? 0);
  if (eni !== undefined && largest > eni.mtu) {
    const what = `${title} may send ${largest} bytes, its ENI ${eni.ifname} ${eni.mtu}`;
    const fix = ['tke-eni repair', `ip link set ${eni.ifname} mtu ${largest}`];
    found.push(finding('mtu-mismatch', { what, fix, subjects: [...subjects, linkId(eni.ifindex)] }));
  }
  return found;
}
