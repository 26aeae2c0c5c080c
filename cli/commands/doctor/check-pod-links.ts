import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { type Check, done, skipped } from './check.ts';
import { macNote, macPolicy } from './find-link-file.ts';

/** Checks the host interfaces of Pods: one for each lease, no others, up, in the link group of their ENI. */
export const POD_LINKS_CHECK: Check = {
  id: 'pod-links',
  scope: 'each Pod has its host interface, up, in its ENI’s group; there are none beside',
  finds: ['veth-missing', 'veth-leaked', 'veth-down', 'link-group-wrong'],
  evaluate: ({ model, node }) => {
    if (node.agent.kind === 'unknown') return skipped(`their owner is not known: ${node.agent.why}`);
    return done([], [`${model.pods.length} Pods`]);
  },
};

/** Checks that udev or another program has not changed the MAC of a Pod's host interface. */
export const MAC_CHECK: Check = {
  id: 'mac-address',
  scope: 'MAC addresses of Pods’ host interfaces are as we gave them; what udev’s policy is',
  finds: ['veth-mac-changed', 'mac-address-policy'],
  evaluate: ({ node, networkd, assessed }) => {
    const policy = networkd.kind === 'known' ? macPolicy(networkd.value.links) : undefined;
    const isChanged = assessed.some(({ id }) => id === 'veth-mac-changed');
    const findings =
      isChanged && policy?.value === 'persistent'
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
    return done(findings, [macNote(policy)]);
  },
};
