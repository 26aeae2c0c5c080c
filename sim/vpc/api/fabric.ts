import type { ProxyTable } from './model/clb/proxy-table.ts';
import type { ListenerPath } from './model/clb/types.ts';
import type { FabricEvent } from './model/types.ts';

/** The packets' side of the cloud: plugs, unplugs and routes. None on a virtual clock. */
export type Fabric = {
  attach(eni: Extract<FabricEvent, { readonly kind: 'attach' }>): Promise<void>;
  detach(eniId: string): Promise<void>;
  assign(eniId: string, ip: string): Promise<void>;
  unassign(eniId: string, ip: string): Promise<void>;
  /** From now on packets to the public address reach the private one, and its packets leave with the public one. */
  bindEip(publicIp: string, ip: string): Promise<void>;
  unbindEip(publicIp: string, ip: string): Promise<void>;
  /** From now on packets to the network go to these addresses and to no others; none: they go nowhere. */
  setGlobalRoutes(cidr: string, gatewayIps: readonly string[]): Promise<void>;
  /** From now on an attached ENI admits what these rules say; without rules: everyone. */
  setAdmission(eni: Extract<FabricEvent, { readonly kind: 'eni-admission' }>): Promise<void>;
  /** From now on packets of a listener go so; what its targets no longer are loses its connections. */
  setListener(listener: ListenerPath): Promise<void>;
  removeListener(listenerId: string): Promise<void>;
  /** From now on a load balancer serves these listeners of HTTP and HTTPS, and no others. */
  setProxy(table: ProxyTable): Promise<void>;
  /** Tells what checks find about targets of listeners; absent: nothing is checked. `key` is `ip:port`. */
  watchHealth?(note: (found: { listenerId: string; key: string; isAlive: boolean }) => void): void;
};

/** Has the packets' side do what happened, in order. */
export async function playEvents(fabric: Fabric, events: readonly FabricEvent[]): Promise<void> {
  for (const event of events) {
    switch (event.kind) {
      case 'attach':
        await fabric.attach(event);
        break;
      case 'detach':
        await fabric.detach(event.eniId);
        break;
      case 'assign':
        await fabric.assign(event.eniId, event.ip);
        break;
      case 'unassign':
        await fabric.unassign(event.eniId, event.ip);
        break;
      case 'eip-bind':
        await fabric.bindEip(event.publicIp, event.ip);
        break;
      case 'eip-unbind':
        await fabric.unbindEip(event.publicIp, event.ip);
        break;
      case 'global-routes':
        await fabric.setGlobalRoutes(event.cidr, event.gatewayIps);
        break;
      case 'eni-admission':
        await fabric.setAdmission(event);
        break;
      case 'clb-listener':
        await fabric.setListener(event.listener);
        break;
      case 'clb-listener-gone':
        await fabric.removeListener(event.listenerId);
        break;
      case 'clb-proxy':
        await fabric.setProxy(event.table);
        break;
    }
  }
}
