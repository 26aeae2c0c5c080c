import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';

const CLOUD_FAULTS: readonly Fault[] = [
  { kind: 'hang' },
  { kind: 'hang', after: true },
  { kind: 'reset' },
  { kind: 'reset', after: true },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnsupportedOperation.InvalidState' },
  { kind: 'http', status: 502, after: true },
  { kind: 'task', fate: 'fail' },
  { kind: 'task', fate: 'vanish' },
  { kind: 'slow-task', ms: 40_000 },
];

const TURNS = 20;
/** A node of two cores has 27 addresses, five of which are spare. */
const MOST_PODS = 18;

/** Ten minutes in which Pods come and go, the cloud and the API server fail, and leaders die and stand still, by chance. */
export const storm: Story = {
  title: 'demand and supply meet after ten minutes of faults and deaths',
  tell: async (stage) => {
    const { streams, host } = stage.world;
    const draw = streams.of('storm');
    const below = (count: number): number => Math.floor(draw() * count);
    const nodes = [await stage.node(), await stage.node()];
    stage.begin();
    for (const fault of CLOUD_FAULTS) stage.cloudFault({ fault, actions: ['*'], probability: 0.03 });
    stage.cloudFault({ fault: { kind: 'stale', ms: 3_000 }, actions: ['Describe*'], probability: 0.1 });
    for (const userAgent of ['ipamd-*', 'agent-*'])
      for (const kind of ['drop-before', 'drop-after'] as const)
        stage.apiFault({ userAgent, verbs: ['update', 'patch', 'create'], chance: 0.03, action: { kind } });
    for (let turn = 0; turn < TURNS; turn++) {
      const node = nodes[below(nodes.length)];
      if (node === undefined) throw new Error('there is no node');
      const isFull = stage.podsOn(node) >= MOST_PODS;
      if (isFull || draw() < 0.4) await stage.end(node, 1 + below(4));
      else await stage.make(node, 1 + below(4));
      const fate = draw();
      if (fate < 0.15) stage.killLeader();
      else if (fate < 0.25) await stage.pauseLeader(between(draw, [5, 40]));
      else if (fate < 0.35) stage.world.api.cutWatches();
      await stage.seconds(between(draw, [5, 40]));
    }
    host.faults.clear();
  },
};
