import { addPlans, buildLbRows } from '../../../cli/commands/lb/build-lb-rows.ts';
import { plansOf, readLb } from '../../cli/commands/lb/lb-scene.ts';
import { ServiceWorld } from '../../cloud-controller-manager/services/service-world.ts';
import { shapeOf } from '../stage/shape.ts';

/** Returns the paths of the documents of `tke-eni lb -o json`: of a load balancer that is as desired, and of others. */
export async function recordLbDocuments(): Promise<object> {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.create('ranges', { spec: { loadBalancerSourceRanges: ['0.0.0.0/8'] } });
  await world.advance(40_000);
  // The controller gathers changes of Nodes for two seconds.
  await world.join('n2');
  const facts = await readLb(world);
  const plans = plansOf(facts);
  const rows = addPlans(buildLbRows(facts), plans);
  await world.stop();
  return { lb: shapeOf({ services: rows }), 'lb --plan': shapeOf({ plans }) };
}
