import type { ClusterNode } from './cluster-node.ts';

/** What of a node is this project's to change; each list is sorted. */
export type NodeSnapshot = Readonly<Record<string, readonly string[]>>;

/** Reads it. @throws RunError */
export async function snapshotNode(node: ClusterNode): Promise<NodeSnapshot> {
  const lines = async (script: string): Promise<readonly string[]> =>
    (await node.exec(['sh', '-c', script]))
      .split('\n')
      .filter((line) => line !== '' && !OF_OTHERS.test(line))
      .sort();
  const objects = async (...args: readonly string[]): Promise<readonly string[]> =>
    (await node.ns.ipJson(...args)).map((object) => JSON.stringify(object)).sort();
  return {
    links: (await node.ns.ipJson('link')).map((link) => String(link['ifname'])).sort(),
    addresses: await lines("ip -o addr | awk '{print $2, $3, $4}'"),
    rules4: await objects('-4', 'rule'),
    rules6: await objects('-6', 'rule'),
    routes4: await objects('-4', 'route', 'show', 'table', 'all'),
    routes6: await lines("ip -6 route show table all | sed 's/ expires [^ ]*//'"),
    tables: await lines('nft list tables'),
    files: await lines(
      'for dir in /etc/cni/net.d /opt/cni/bin /var/lib/kubelet/device-plugins /run/tke-eni; do ls -A $dir 2>/dev/null; done; ls -d /run/tke* 2>/dev/null; true',
    ),
    settings: await lines('cd /proc/sys/net; grep . ipv4/conf/*/rp_filter ipv6/conf/*/disable_ipv6'),
  };
}

/** Files of kubelet's own, and tables that kube-proxy and kubelet make when they come to it. */
const OF_OTHERS = /kubelet_internal_checkpoint|kubelet\.sock$|^table ip6? (nat|filter|mangle|raw|kube-proxy)$/;
