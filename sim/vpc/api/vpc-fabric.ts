import { bindEip, unbindEip } from '../eip-nat.ts';
import type { TestVpc } from '../vpc.ts';
import type { Fabric } from './fabric.ts';

/** Drives the small VPC of network namespaces; `nodeOf` names the node that an instance is. */
export function createVpcFabric(vpc: TestVpc, nodeOf: (instanceId: string) => string): Fabric {
  return {
    attach: async ({ eniId, instanceId, subnetId, mac, primaryIp }) => {
      await vpc.attachEni(nodeOf(instanceId), { eniId, subnetId, mac, primaryIp });
    },
    detach: (eniId) => vpc.detachEni(eniId),
    assign: async (eniId, ip) => {
      await vpc.assignIp(eniId, ip.includes(':') ? 6 : 4, ip);
    },
    unassign: (eniId, ip) => vpc.unassignIp(eniId, ip),
    bindEip: (publicIp, ip) => bindEip(vpc.router, publicIp, ip),
    unbindEip: (publicIp, ip) => unbindEip(vpc.router, publicIp, ip),
    setGlobalRoutes: (cidr, gatewayIps) => vpc.setGlobalRoutes(cidr, gatewayIps),
    setAdmission: ({ eniId, instanceId, isPrimary, rules }) =>
      vpc.setAdmission(isPrimary ? vpc.node(nodeOf(instanceId)).primary.eniId : eniId, rules),
    setListener: (listener) => vpc.loadBalancing.setListener(listener),
    removeListener: (listenerId) => vpc.loadBalancing.removeListener(listenerId),
    setProxy: (table) => vpc.loadBalancing.setProxy(table),
    watchHealth: (note) => {
      vpc.loadBalancing.onHealth = note;
    },
  };
}
