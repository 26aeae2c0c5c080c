import type { NetnsView } from '../support/netns.ts';

/**
 * What the cloud does with packets of EIPs: one address for the other, both ways, without any state, so that what is
 * unbound is cut off at once. Made with the first binding; a VPC without EIPs has no such table.
 */
const RULESET = `
table ip eip {
  map inwards { type ipv4_addr : ipv4_addr
  }
  map outwards { type ipv4_addr : ipv4_addr
  }
  chain prerouting { type filter hook prerouting priority -310; policy accept;
    ip daddr set ip daddr map @inwards
  }
  chain postrouting { type filter hook postrouting priority 300; policy accept;
    oifname "outside" ip saddr set ip saddr map @outwards
  }
}
`;

/** Leads a public address to a private one of the VPC, and its packets out with the public one. */
export async function bindEip(router: NetnsView, publicIp: string, ip: string): Promise<void> {
  const hasTable = (await router.tryRun(['nft', 'list', 'table', 'ip', 'eip'])).code === 0;
  await router.nft(
    `${hasTable ? '' : RULESET}add element ip eip inwards { ${publicIp} : ${ip} }\nadd element ip eip outwards { ${ip} : ${publicIp} }\n`,
  );
}

/** Ends that. What is not bound is no error. */
export async function unbindEip(router: NetnsView, publicIp: string, ip: string): Promise<void> {
  await router.tryRun(['nft', 'delete', 'element', 'ip', 'eip', 'inwards', `{ ${publicIp} : ${ip} }`]);
  await router.tryRun(['nft', 'delete', 'element', 'ip', 'eip', 'outwards', `{ ${ip} : ${publicIp} }`]);
}
