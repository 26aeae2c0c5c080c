import { at } from '../kube-api/contract/contract-case.ts';
import type { RealCluster } from './real-cluster.ts';

/** What the API server has refused to agent, ipamd or cloud controller manager so far for want of a right: `get /api/v1/…`. */
export function refusedRequests(cluster: RealCluster): readonly string[] {
  const names = ['tke-eni-ipamd', 'tke-eni-agent', 'tke-cloud-controller-manager'];
  const ours = names.map((name) => `system:serviceaccount:kube-system:${name}`);
  return (
    cluster
      .auditLog()
      .filter((one) => ours.includes(String(at(one, 'user', 'username'))))
      .filter((one) => [401, 403].includes(Number(at(one, 'responseStatus', 'code'))))
      .map((one) => `${at(one, 'verb')} ${at(one, 'requestURI')}`)
      // A cluster without native nodes has no Machines: that is asked, and the answer is not needed.
      .filter((line) => !line.includes('node.tke.cloud.tencent.com'))
  );
}
