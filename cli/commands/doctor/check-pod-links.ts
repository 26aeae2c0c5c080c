import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { buildOutline, type Outline } from '../../../inspection/model/build-outline.ts';
import { keyOfLink } from '../../../inspection/node/find-pod-links.ts';
import type { NodePod } from '../../../inspection/node/join-pods.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { type Check, done, skipped } from './check.ts';
import { macNote, macPolicy } from './find-link-file.ts';

/** Pattern of the names that the agent gives to host veths. */
const HOST_VETH = /^eni[0-9a-f]{11}$/;

/** Checks the host interfaces of Pods: one for each lease, no others, up, in the link group of their ENI. */
export const POD_LINKS_CHECK: Check = {
  id: 'pod-links',
  scope: 'each Pod has its host interface, up, in its ENI’s group; there are none beside',
  finds: ['veth-missing', 'veth-leaked', 'veth-down', 'link-group-wrong'],
  evaluate: ({ node, differences }) => {
    const outline = buildOutline(node);
    if (node.agent.kind === 'unknown') return skipped(`their owner is not known: ${node.agent.why}`);
    const owned = new Set(outline.pods.map(({ pod }) => pod.hostIfindex));
    // Only the comparison with the agent's records checks whether a sandbox exists at the other end of a veth.
    const candidates = differences.kind === 'known' ? [] : node.host.links;
    const leaked = candidates.filter(
      (link) =>
        !owned.has(link.ifindex) &&
        (keyOfLink(link) !== undefined || (link.kind === 'veth' && HOST_VETH.test(link.ifname))),
    );
    return done(
      [
        ...outline.pods.flatMap((pod) => ofPod(pod, outline)),
        ...leaked.map(({ ifname, ifindex, ifalias }) =>
          finding('veth-leaked', {
            what: `${ifname} ${ifalias === undefined ? 'is' : `(${ifalias}) is`} no living Pod’s`,
            fix: ['tke-eni diff', `ip -d link show ${ifname}`],
            subjects: [linkId(ifindex)],
          }),
        ),
      ],
      [`${outline.pods.length} Pods`],
    );
  },
};

function ofPod({ pod, lease, hostLink: link, title, ips }: NodePod, { enis }: Outline): readonly Finding[] {
  // The links of other modes are created by another main plugin. A lease that is not active is being changed by an ADD
  // or DEL, and its link may not be complete.
  if (lease?.plugin !== 'route-eni' || lease.state !== 'active') return [];
  const subjects = [podId(pod.key), ...(link === undefined ? [] : [linkId(link.ifindex)])];
  if (link === undefined) {
    const what = `${title} (${ips.join(', ')}) has no host interface`;
    const name = lease.podName === '' ? pod.key : `${lease.podName} -n ${lease.podNamespace}`;
    return [finding('veth-missing', { what, fix: [`kubectl delete pod ${name}`], subjects })];
  }
  const group = enis.find(({ eniId }) => eniId === lease.eniId)?.table;
  return [
    ...((link.flags & IFF_UP) === 0
      ? [
          finding('veth-down', {
            what: `${link.ifname} of ${title} is down`,
            fix: ['tke-eni repair', `ip link set ${link.ifname} up`],
            subjects,
          }),
        ]
      : []),
    ...(group !== undefined && link.group !== group
      ? [
          finding('link-group-wrong', {
            what: `${link.ifname} of ${title} is in group ${link.group}, its ENI ${lease.eniId} has ${group}`,
            fix: ['tke-eni repair', `ip link set ${link.ifname} group ${group}`],
            subjects,
          }),
        ]
      : []),
  ];
}

/** Checks that udev or another program has not changed the MAC of a Pod's host interface. */
export const MAC_CHECK: Check = {
  id: 'mac-address',
  scope: 'MAC addresses of Pods’ host interfaces are as we gave them; what udev’s policy is',
  finds: ['veth-mac-changed', 'mac-address-policy'],
  evaluate: ({ node, networkd }) => {
    const { pods } = buildOutline(node);
    const changed = pods.flatMap(({ lease, hostLink: link, pod, title }) => {
      const wanted = lease?.hostVeth?.mac;
      return wanted === undefined || link?.address === undefined || link.address === wanted
        ? []
        : [
            {
              what: `${link.ifname} of ${title} has the MAC ${link.address}, we gave it ${wanted}`,
              ifindex: link.ifindex,
              pod,
              ifname: link.ifname,
              wanted,
            },
          ];
    });
    const policy = networkd.kind === 'known' ? macPolicy(networkd.value.links) : undefined;
    const findings = changed.map(({ what, ifindex, pod, ifname, wanted }) =>
      finding('veth-mac-changed', {
        what,
        fix: ['tke-eni repair', `ip link set ${ifname} address ${wanted}`],
        subjects: [linkId(ifindex), podId(pod.key)],
      }),
    );
    const policyFinding =
      findings.length > 0 && policy?.value === 'persistent'
        ? [
            finding('mac-address-policy', {
              what: `${policy.path} gives new interfaces MACAddressPolicy=persistent`,
              severity: 'warning',
              fix: [
                "printf '[Match]\\nOriginalName=eni*\\n\\n[Link]\\nMACAddressPolicy=none\\n' >/etc/systemd/network/10-tke-eni.link",
                'udevadm control --reload',
              ],
              subjects: [],
            }),
          ]
        : [];
    if (ifKnown(node.agent) === undefined && networkd.kind === 'unknown') return skipped(networkd.why);
    return done([...findings, ...policyFinding], [macNote(policy)]);
  },
};
