import { addPlans, buildLbRows } from '../../../cli/commands/lb/build-lb-rows.ts';
import { INGRESSES } from '../../../kube/resource-types.ts';
import { ingressPlansOf, plansOf, readLb } from '../../cli/commands/lb/lb-scene.ts';
import { ServiceWorld } from '../../cloud-controller-manager/services/service-world.ts';
import { shapeOf } from '../stage/shape.ts';

const METADATA = {
  ...{ name: 'site', namespace: 'default' },
  annotations: { 'kubernetes.io/ingress.class': 'qcloud', 'ingress.cloud.tencent.com/auto-rewrite': 'true' },
};
const BACKEND = { service: { name: 'gone', port: { number: 80 } } };
const SPEC = { defaultBackend: BACKEND, tls: [{ secretName: 'tls' }] };

/** Returns the paths of the documents of `tke-eni lb -o json`: of a load balancer that is as desired, and of others. */
export async function recordLbDocuments(): Promise<object> {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.create('ranges', { spec: { loadBalancerSourceRanges: ['0.0.0.0/8'] } });
  await world.advance(40_000);
  // The controller gathers changes of Nodes for two seconds.
  await world.join('n2');
  const ingress = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' };
  const { clock, admin } = world.world.scene;
  await clock.run(admin.create(INGRESSES, { ...ingress, metadata: METADATA, spec: SPEC }));
  const facts = await readLb(world, undefined, { plan: true });
  const plans = plansOf(facts);
  const rows = addPlans(buildLbRows(facts), plans);
  await world.stop();
  return { lb: shapeOf({ services: rows }), 'lb --plan': shapeOf({ plans, ingressPlans: ingressPlansOf(facts) }) };
}
