import { PODS } from '../../../kube/resource-types.ts';
import { ruleOf, type ServiceStage } from '../service-stage.ts';
import { UNWELL } from '../standins/endpoint-slices.ts';
import { groupOn } from '../stories/ingresses.ts';
import { DIRECT, INTERNAL } from '../stories/services.ts';
import type { World } from '../world.ts';
import type { ServiceDeed } from './deed.ts';

/** Name of the load balancer of others. */
export const BOUGHT = 'bought';
const CLASS = 'kubernetes.io/ingress.class';

/** Does it. */
export async function performService(services: ServiceStage, world: World, deed: ServiceDeed): Promise<void> {
  switch (deed.kind) {
    case 'service': {
      const { name, app, ports, ranges, isDirect, isInternal } = deed;
      const spec = {
        ...{ selector: { app }, loadBalancerSourceRanges: ranges },
        ports: ports.map((port) => ({ name: `p${port}`, port, targetPort: port + 8_000 })),
      };
      const kind = isInternal === undefined ? {} : isInternal ? INTERNAL : PUBLIC;
      const annotations = { ...kind, [DIRECT]: `${isDirect}` };
      if (services.find('Service', name) === undefined) await services.create(name, { annotations, spec });
      else await services.change('Service', name, { annotations, spec });
      return;
    }
    case 'ingress': {
      const { name, path, service, isOfOthers, isGrouped } = deed;
      const spec = ruleOf(path, 'www.example.com', service);
      const own = { [CLASS]: isOfOthers === true ? 'nginx' : 'qcloud' };
      const annotations = isGrouped === true ? { ...own, ...groupOn(services.idOf(BOUGHT)) } : own;
      if (services.find('Ingress', name) === undefined) await services.createIngress(name, { annotations, spec });
      else await services.change('Ingress', name, { annotations, spec });
      return;
    }
    case 'end service':
      await services.remove('Service', deed.name);
      return;
    case 'end ingress':
      await services.remove('Ingress', deed.name);
      return;
    case 'unwell': {
      const about = { namespace: 'default', name: deed.name };
      await services.setWell(deed.name, false);
      // The Pod may be gone by then.
      const body = { metadata: { annotations: { [UNWELL]: null } } };
      void world.time
        .sleep(deed.ms)
        .then(() => world.admin.patch(PODS, about, { kind: 'merge', body }).catch(() => {}));
      return;
    }
    case 'tamper':
      services.tamper(deed.service, deed.what);
      return;
    case 'untag': {
      const putBack = services.untag(deed.service);
      void world.time.sleep(deed.ms).then(putBack);
      return;
    }
  }
}

/** The annotations of one that is not internal. */
const PUBLIC = Object.fromEntries(
  Object.entries(INTERNAL).map(([key, value]) => [key, /true/.test(value) ? value : null]),
);
