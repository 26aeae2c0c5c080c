import { recordOf, textOf } from '../../../runtime/json.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { CLOUD } from '../world.ts';

const CREATE = 'CreateNetworkInterface';
const UNASSIGN = 'UnassignPrivateIpAddresses';

const readyOf = (stage: Stage, machine: Machine) =>
  stage.nec(machine).status.conditions?.find(({ type }) => type === 'Ready');

/** Messages of events of a Node, the same as often as it was told. */
const toldOf = (stage: Stage, machine: Machine, reason: string): readonly string[] =>
  stage.world.objects('events').flatMap((event) => {
    const { kind, name } = recordOf(event['involvedObject']);
    const isIt = kind === 'Node' && name === machine.name && event['reason'] === reason;
    return isIt ? Array.from({ length: Number(event['count'] ?? 1) }, () => textOf(event['message'])) : [];
  });

/** What the cloud refuses is told once: in its words, with the id of its request. */
function expectTold(stage: Stage, machine: Machine, reason: string, words: string): void {
  const told = toldOf(stage, machine, reason);
  const says = new RegExp(`${words}.*, RequestId=[0-9a-f-]{36}$`);
  stage.expect(`it is told once: ${told.join('; ')}`, told.length === 1 && says.test(told[0] ?? ''));
  // With the id each try would be a write.
  stage.expect('the condition has no id', !/RequestId/.test(readyOf(stage, machine)?.message ?? 'RequestId'));
}

/** The VPC has room for one ENI, and Pods need two. */
export const vpcQuota: Story = {
  title: 'a node that gets no more ENIs says so once, tries it seldom, and goes on when it gets some',
  world: { cloud: { ...CLOUD, vpcEnis: 1 } },
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const names = await stage.make(node, 12);
    await stage.until('it says why', () => readyOf(stage, node)?.reason === 'ENILimit');
    const before = stage.sent(CREATE);
    await stage.minutes(10);
    const tries = stage.sent(CREATE) - before;
    stage.expect(`it is tried ${tries} times in ten minutes`, tries > 0 && tries <= 6);
    expectTold(stage, node, 'ENILimit', 'exceeds the quota of the VPC');
    stage.world.host.model.state.vpcEniQuota = 10;
    await stage.until('all have addresses', () => names.every((name) => stage.ipOf(name) !== undefined), 1_200_000);
    await stage.until('its end is told', () => toldOf(stage, node, 'SupplyMet').length > 0);
  },
};

/** The cloud creates no ENI for half an hour, and then none in the first subnet that is asked for. */
export const refusedCreation: Story = {
  title: 'a creation that the cloud refuses is told once, and tried in another subnet',
  tell: async (stage) => {
    const fault = { kind: 'error', code: 'InvalidParameterValue.Malformed' } as const;
    const heal = stage.cloudFault({ fault, actions: [CREATE] });
    const node = await stage.join();
    stage.begin();
    const isSaid = () => readyOf(stage, node)?.reason === 'CloudRefused';
    await stage.until('it says why', isSaid);
    const isOver = stage.always('it says so while it is tried again', isSaid);
    await stage.minutes(30);
    isOver();
    stage.expect('it is tried again', stage.sent(CREATE) > 3);
    expectTold(stage, node, 'CloudRefused', fault.code);
    heal();
    const second = await stage.join();
    stage.cloudFault({ fault, actions: [CREATE], times: 1 });
    await stage.until('both are ready', () => [node, second].every((one) => stage.isReady(one)));
  },
};

/** ENIs of somebody else have all places of an instance. */
export const occupiedInstance: Story = {
  title:
    'a node whose instance has no place says so, keeps no ENI that it cannot attach, and takes none of others away',
  tell: async (stage) => {
    const { state } = stage.world.host.model;
    const node = await stage.join();
    const subnet = state.subnet('subnet-podsa000');
    const aliens = [1, 2, 3].map((place) => {
      const order = { name: `alien-${place}`, description: '', groups: ['sg-1'], tags: {}, isPrimary: false };
      const eni = state.makeEni({ ...order, subnet, ip: subnet.pool.take() });
      eni.state = 'AVAILABLE';
      state.bind(eni, node.instanceId, place);
      state.touch(eni);
      return eni;
    });
    stage.begin();
    await stage.until('it says why', () => readyOf(stage, node)?.reason === 'InstanceENILimit');
    await stage.minutes(30);
    const own = [...state.enis.values()].filter(({ tags }) => tags['tke-created-eni'] === 'true');
    stage.expect(`${own.length} ENIs wait for a place`, own.length <= 1);
    stage.expect(
      'the others have theirs',
      aliens.every(({ attachment }) => attachment !== undefined),
    );
    for (const eni of aliens) {
      state.unbind(eni);
      state.removeEni(eni);
    }
    await stage.until('it is ready', () => stage.isReady(node), 1_200_000);
  },
};

/** For a while the cloud answers neither to attachments nor to what takes addresses away. */
export const failingCalls: Story = {
  title: 'a call without an outcome is sent six times, each on record, and then decided again',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 7);
    stage.begin();
    stage.cloudFault({ fault: { kind: 'error', code: 'InternalError' }, actions: [UNASSIGN] });
    const sentBefore = stage.sent(UNASSIGN);
    const tries = new Map<number, number>();
    const first = () => stage.nec(node).status.intents?.find(({ action }) => action === UNASSIGN);
    await stage.end(node, 7);
    await stage.until('an address is on its way back', () => first() !== undefined, 1_200_000);
    const { id } = first() ?? {};
    await stage.until(
      'it is decided again',
      () => {
        const now = first();
        if (now?.id === id && now?.phase === 'Unclear') tries.set(stage.sent(UNASSIGN) - sentBefore, now.tries ?? 0);
        return now?.id !== id;
      },
      1_200_000,
    );
    const counted = [...tries].map(([sent, on]) => `${sent} ${on}`).join();
    stage.expect(`tries on record: ${counted}`, counted === '1 1,2 2,3 3,4 4,5 5,6 6');
  },
};
