import { join } from 'node:path';
import { kubeProxyArgv } from './control-plane.ts';
import { Daemon } from './daemon.ts';
import type { RealCluster } from './real-cluster.ts';

/**
 * Starts a kube-proxy on the machine of the control plane, so that its daemons reach Services by their addresses. It ends
 * with the machine. It has the name and the rights of the first node's, as this machine is no Node.
 */
export function startControlPlaneProxy(cluster: RealCluster): Daemon {
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error('the cluster has no nodes');
  const kubeconfig = join(cluster.dir, node.name, 'disk/etc/kubernetes/kube-proxy.conf');
  const daemon = new Daemon({
    name: 'kube-proxy of the control plane',
    machine: cluster.controlPlane,
    argv: () => kubeProxyArgv(join(cluster.assets, 'kube-proxy'), node.name, { kubeconfig }),
    logPath: join(cluster.dir, 'kube-proxy.log'),
  });
  daemon.start();
  return daemon;
}
