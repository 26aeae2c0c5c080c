import { POD_ANNOTATION } from '../../../crd/names.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../../kube/resource-types.ts';
import {
  claimOf,
  deleteClaim,
  ipOfClaim,
  keep,
  move,
  OTHER_ZONE,
  objectOf,
  phaseOf,
  start,
  untilPhase,
  untilWhy,
  whyOf,
  worldOf,
} from '../kept-stage.ts';
import type { Machine } from '../machine.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';

/** A Pod is deleted by force, and its kubelet has not heard of it; later its machine is lost. */
export const forcedAway: Story = {
  title: 'an address is not taken from a sandbox, but of a machine that is lost, when its time is over',
  world: worldOf('--static-takeover-after=2m'),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const ip = await start(stage, 'web-0', first);
    stage.begin();
    first.kubelet.deafen();
    stage.force('web-0');
    await stage.create('web-0', second, keep());
    await stage.minutes(2);
    stage.expect('it waits', stage.ipOf('web-0') === undefined);
    stage.expect('it says for whom', whyOf(stage).startsWith(`HandOver: ${ip} is on node ${first.name}, whose agent`));
    first.kubelet.relist();
    await stage.until('it has its address', () => stage.ipOf('web-0') === ip);
    second.turnOff();
    stage.force('web-0');
    const body = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } };
    const patch = { kind: 'merge', body, subresource: 'status' } as const;
    await stage.people(stage.world.admin.patch(NODES, { name: second.name }, patch));
    await stage.create('web-0', first, keep());
    await stage.seconds(110);
    stage.expect('it waits again', stage.ipOf('web-0') === undefined);
    await stage.until('it is taken over', () => stage.ipOf('web-0') === ip);
    await stage.leave(second);
  },
};

/** A Pod goes to another zone, where its address cannot follow, and people give the claim up. */
export const elsewhere: Story = {
  title: 'an address stays in its zone, and a claim that is deleted gives way to a new one',
  world: worldOf(),
  tell: async (stage) => {
    const [here, there] = [await stage.node(), await stage.node(OTHER_ZONE)];
    const ip = await start(stage, 'web-0', here);
    stage.begin();
    await stage.endPods('web-0');
    await stage.create('web-0', there, keep());
    await untilWhy(stage, `AddressElsewhere: ${ip} is of subnet-podsa000 in zone ap-guangzhou-3, node ${there.name}`);
    stage.expect('the Pod says so', stage.events('AddressElsewhere').length > 0);
    await stage.minutes(1);
    await stage.endPods('web-0');
    stage.expect('it has its address at home', (await start(stage, 'web-0', here)) === ip);
    await stage.endPods('web-0');
    await stage.create('web-0', there, keep());
    await untilWhy(stage, 'AddressElsewhere');
    await deleteClaim(stage);
    await stage.until('it has a new one', () => stage.ipOf('web-0')?.startsWith('10.2.') === true);
  },
};

/** Lists of Pods are empty, then those of claims and VpcIPs; and the NodeENIConfig of the node is deleted. */
export const keptLists: Story = {
  title: 'a kept address stays with what lists lack, and without the object of its node',
  world: worldOf('--claim-expired-duration=5m'),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const ip = await start(stage, 'web-0', first);
    await start(stage, 'web-1', first, { [POD_ANNOTATION.claimExpiredDuration]: '2h' });
    const other = stage.ipOf('web-1');
    await stage.endPods('web-1');
    await untilPhase(stage, 'Retained', 'web-1');
    // A Pod whose sandbox is not made yet: no agent has its address.
    const awaited = await start(stage, 'web-2', second);
    await stage.endPods('web-2');
    await untilPhase(stage, 'Retained', 'web-2');
    second.kubelet.deafen();
    await stage.create('web-2', second, keep());
    stage.begin();
    for (const [resources, minutes] of [
      [['pods'], 20],
      [['vpcipclaims', 'vpcips'], 10],
    ] as const) {
      const heal = stage.apiFault({ resources, action: { kind: 'empty-list' } });
      stage.world.api.cutWatches('ipamd-*');
      await stage.minutes(minutes);
      stage.expect('the Pod has it', stage.ipOf('web-0') === ip && claimOf(stage) !== undefined);
      heal();
      stage.world.api.cutWatches('ipamd-*');
    }
    await untilPhase(stage, 'Bound');
    second.kubelet.relist();
    await stage.until('the Pod that waited has its own', () => stage.ipOf('web-2') === awaited);
    stage.expect('the other has its own', (await start(stage, 'web-1', second)) === other);
    for (const seconds of [0, 1, 3]) {
      await stage.people(stage.world.admin.delete(NODE_ENI_CONFIGS, { name: first.name }));
      await stage.seconds(seconds);
      if (seconds > 0) stage.killLeader();
      await stage.minutes(4);
      stage.expect('it stays Bound', phaseOf(stage) === 'Bound');
    }
    await move(stage, 'web-0', second);
  },
};

/** The cloud moves no address; then it moves twelve, slowly; then Pods turn back and are given up on the way. */
export const manyMoves: Story = {
  title: 'addresses move, also by way of nowhere, cross each other, and turn back on the way',
  world: worldOf('--node-release-grace=5s', '--static-takeover-after=30s'),
  tell: async (stage) => {
    const [first, second] = [await stage.node({ cores: 8 }), await stage.node({ cores: 8 })];
    await start(stage, 'web-0', first);
    await start(stage, 'other', second);
    stage.begin();
    for (const code of ['UnauthorizedOperation', 'UnsupportedOperation.InvalidState', 'InternalError']) {
      const heal = stage.cloudFault({ fault: { kind: 'error', code }, actions: ['MigratePrivateIpAddress'] });
      await move(stage, 'web-0', second);
      heal();
      await move(stage, 'web-0', first);
    }
    const names = Array.from({ length: 8 }, (_, at) => `db-${at}`);
    const ips = new Map<string, string>();
    for (const name of names) ips.set(name, await start(stage, name, first));
    const fault = { kind: 'slow-task', ms: 4_000 } as const;
    const heal = stage.cloudFault({ fault, actions: ['MigratePrivateIpAddress'] });
    await stage.endPods(...names);
    for (const name of names) await stage.create(name, second, keep());
    const { enis } = stage.world.host.model.state;
    const isPlaced = (ip: string) => [...enis.values()].some((eni) => eni.ips.has(ip));
    await stage.until('all have moved', () => {
      for (const ip of ips.values()) stage.expect(`${ip} is on an ENI`, isPlaced(ip));
      return names.every((name) => stage.ipOf(name) === ips.get(name));
    });
    heal();
    for (const seconds of [0.5, 1, 2, 3]) {
      const ip = stage.ipOf('web-0');
      await stage.endPods('web-0');
      await stage.create('web-0', second, keep());
      await stage.seconds(seconds);
      await stage.endPods('web-0');
      stage.expect('it is at home again', (await start(stage, 'web-0', first)) === ip);
      await stage.endPods('db-0');
      await stage.create('db-0', first, keep());
      await stage.seconds(seconds);
      await deleteClaim(stage, 'db-0');
      await stage.endPods('db-0');
      await stage.until('the claim has ended', () => claimOf(stage, 'db-0') === undefined, 180_000);
      await start(stage, 'db-0', second);
    }
    await stage.endPods('web-0');
    const ip = ipOfClaim(stage);
    await stage.create('web-0', second, keep());
    await stage.seconds(1);
    await stage.leave(first);
    await stage.until('it has its address', () => stage.ipOf('web-0') === ip);
  },
};

/** The cloud controller manager publishes an address as a target of a load balancer. */
export const registeredAddress: Story = {
  title: 'a claim ends when no load balancer has its address, or has had it for too long',
  world: worldOf('--claim-expired-duration=5m', '--load-balancer-wait=20m'),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const publish = (node: Machine, registeredIPs: readonly string[]) =>
      stage.patchNec(node, { loadBalancers: { registeredIPs } });
    const ip = await start(stage, 'web-0', first);
    stage.begin();
    await publish(first, [ip]);
    await stage.endPods('web-0');
    await untilPhase(stage, 'Retained');
    stage.expect('its own next Pod gets it', (await start(stage, 'web-0', second)) === ip);
    // What the former node's list says of it counts no more.
    await publish(second, [ip]);
    await stage.endPods('web-0');
    await stage.minutes(15);
    stage.expect('it waits', whyOf(stage).startsWith(`AddressReleasing: it ends when no load balancer has ${ip}`));
    await publish(second, []);
    await stage.until('it ends', () => claimOf(stage) === undefined);
    await publish(first, [await start(stage, 'web-0', first)]);
    await stage.endPods('web-0');
    await stage.minutes(18);
    stage.expect('it waits again', claimOf(stage) !== undefined);
    await stage.until('it ends all the same', () => claimOf(stage) === undefined, 1_200_000);
    stage.expect('it is told', stage.events('RegisteredTooLong').length > 0);
    await publish(first, []);
  },
};

/** People give claims up right after their Pods; other Pods ask for the addresses, here and elsewhere, and after a move. */
export const nextName: Story = {
  title: 'an address that leaves one name for another rests between them, and its own name has it at once',
  world: worldOf(),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const asking = (ip: string) => keep({ [POD_ANNOTATION.nominatedVpcIp]: ip });
    const ip = await start(stage, 'web-0', first);
    stage.begin();
    for (const [at, node] of [first, second, second, first].entries()) {
      const [before, next] = [`web-${at}`, `web-${at + 1}`];
      if (at % 2 > 0) await move(stage, before, first);
      await stage.endPods(before);
      await deleteClaim(stage, before);
      await stage.create(next, node, asking(ip));
      await stage.until(`${next} has it`, () => stage.ipOf(next) === ip);
    }
    for (const [at, node] of [first, second].entries()) {
      const [plain, next] = [`plain-${at}`, `db-${at}`];
      await stage.pod(plain, first);
      const ofPool = stage.ipOf(plain) ?? '';
      await stage.endPods(plain);
      await stage.create(next, node, asking(ofPool));
      await stage.until(`${next} has it`, () => stage.ipOf(next) === ofPool);
    }
  },
};

const TURNS = 30;
const NAMES = ['web-0', 'web-1', 'web-2', 'web-3'];

/** Four names on three nodes in two zones: moved, forced out, given up, while leaders die, by chance. */
export const keptInStorm: Story = {
  title: 'kept addresses stay with their names through moves, force and deaths, and end with their claims',
  world: worldOf('--claim-expired-duration=5m', '--static-takeover-after=30s'),
  tell: async (stage) => {
    const draw = stage.world.streams.of('kept addresses in a storm');
    const below = (count: number): number => Math.floor(draw() * count);
    const nodes = [await stage.node(), await stage.node(), await stage.node(OTHER_ZONE)];
    const alive = new Map<string, Machine>();
    stage.begin();
    for (const kind of ['reset', 'hang'] as const)
      stage.cloudFault({ fault: { kind, after: true }, actions: ['*PrivateIpAddress*'], probability: 0.05 });
    for (let turn = 0; turn < TURNS; turn++) {
      const name = NAMES[below(NAMES.length)] ?? '';
      const node = nodes[Math.floor(draw() ** 2 * nodes.length)];
      if (node === undefined) throw new Error('there is no node');
      const before = alive.get(name);
      const fate = draw();
      if (before !== undefined && fate < 0.15) {
        before.kubelet.deafen();
        stage.force(name);
      } else if (before !== undefined && fate < 0.7) await stage.endPods(name);
      else if (claimOf(stage, name) !== undefined && fate > 0.85) await deleteClaim(stage, name).catch(() => {});
      if (objectOf(stage, 'pods', name) === undefined) {
        alive.delete(name);
        if (draw() < 0.8) {
          await stage.create(name, node, keep());
          alive.set(name, node);
        }
      }
      await stage.seconds(between(draw, [0, 8]));
      before?.kubelet.relist();
      if (draw() < 0.2) stage.killLeader();
      await stage.seconds(draw() ** 3 * 60);
    }
    stage.heal();
    const isServed = (name: string) =>
      stage.ipOf(name) !== undefined || whyOf(stage, name).startsWith('AddressElsewhere');
    await stage.until('all are served, or told', () => [...alive.keys()].every(isServed), 1_200_000);
    await stage.endPods(...alive.keys());
    await stage.until('all claims end', () => stage.world.objects('vpcipclaims').length === 0, 1_200_000);
  },
};
