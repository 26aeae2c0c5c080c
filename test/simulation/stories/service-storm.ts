import { BACKEND_READY_GATE } from '../../../crd/names.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { type Change, ServiceStage } from '../service-stage.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';
import { CLOSED_NODE, DIRECT, INTERNAL, WORLD } from './services.ts';

const CLOUD_FAULTS: readonly Fault[] = [
  { kind: 'error', code: 'InternalError' },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'reset', after: true },
  { kind: 'hang', after: true },
];
const WRITES = ['CreateLoadBalancer', 'CreateListener', 'ModifyListener', 'BatchModifyTargetWeight', 'Delete*'];
const TURNS = 20;
const INTERNAL_SUBNET = 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid';
const NAMES = ['a', 'b', 'a-copy'] as const;

/** Ten minutes in which Services and their Pods come, change and go, cloud and API server fail, and leaders die and stand still, by chance. */
export const serviceStorm: Story = {
  title: 'each Service has one load balancer as it asks after ten minutes of faults and deaths',
  world: WORLD,
  tell: async (stage) => {
    const { streams, host } = stage.world;
    const services = new ServiceStage(stage);
    const draw = streams.of('service storm');
    const oneOf = <T>(...all: readonly T[]): T => all[Math.floor(draw() * all.length)] as T;
    const nodes = [await stage.node(), await stage.node()] as const;
    const bought = await services.buy();
    stage.begin();
    for (const fault of CLOUD_FAULTS) stage.cloudFault({ fault, actions: ['*'], probability: 0.05 });
    stage.cloudFault({ fault: { kind: 'stale', ms: 20_000 }, actions: ['Describe*'], probability: 0.1 });
    stage.cloudFault({ fault: { kind: 'partial' }, actions: ['Describe*'], probability: 0.05 });
    stage.cloudFault({ fault: { kind: 'refuse-one' }, actions: ['Batch*registerTargets'], probability: 0.1 });
    for (const fate of ['fail', 'vanish'] as const)
      stage.cloudFault({ fault: { kind: 'task', fate }, actions: WRITES, probability: 0.05 });
    for (const kind of ['drop-before', 'drop-after'] as const)
      stage.apiFault({ userAgent: 'ccm-*', verbs: ['update', 'patch', 'create'], chance: 0.05, action: { kind } });
    const changes: readonly (() => Change)[] = [
      () => ({ spec: { ports: [{ port: oneOf(80, 81), targetPort: 8_080 }] } }),
      () => ({ spec: { loadBalancerSourceRanges: oneOf([], ['10.0.0.0/8'], ['192.0.2.0/24']) } }),
      () => ({ annotations: { [DIRECT]: oneOf('true', 'false') } }),
      // Back to an open one, with leave: without it the change is refused, and so is each later one.
      () => ({
        annotations: oneOf<NonNullable<Change['annotations']>>(INTERNAL, { ...INTERNAL, [INTERNAL_SUBNET]: null }),
      }),
    ];
    const pods = new Set<string>();
    for (let turn = 0; turn < TURNS; turn++) {
      const name = oneOf(...NAMES);
      const [pod] = pods;
      const deed = draw();
      if (deed < 0.25) {
        const [made = ''] = await stage.make(oneOf(...nodes), 1, {
          labels: { app: oneOf('a', 'b') },
          gates: oneOf([], [BACKEND_READY_GATE]),
        });
        pods.add(made);
      } else if (deed < 0.35 && pod !== undefined) {
        pods.delete(pod);
        await stage.endPods(pod);
      } else if (deed < 0.4 && pod !== undefined) await services.setWell(pod, oneOf(true, false));
      else if (deed < 0.5)
        await services.changeNode(nodes[0], { metadata: { labels: { [CLOSED_NODE]: oneOf('', null) } } });
      else if (services.find('Service', name) === undefined) await services.copy(oneOf('a', 'b'), name);
      else if (deed < 0.65) await services.remove('Service', name);
      else if (deed < 0.75) services.tamper(name, oneOf('a target off', 'a weight'));
      else await services.change('Service', name, oneOf(...changes)());
      const fate = draw();
      if (fate < 0.2) stage.killLeader('ccm');
      else if (fate < 0.3) await stage.pauseLeader(between(draw, [5, 40]), 'ccm');
      else if (fate < 0.35) stage.world.api.cutWatches();
      await stage.seconds(between(draw, [1, 40]));
    }
    host.faults.clear();
    stage.heal();
    await stage.minutes(25);
    stage.expect(
      'that of others stays',
      services.balancers.some(({ loadBalancerId }) => loadBalancerId === bought),
    );
  },
};
