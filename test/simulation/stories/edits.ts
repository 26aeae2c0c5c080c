import type { NodeEniConfigStatus, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';

/** What a person writes who empties the list of ENIs, counts included. */
const EMPTIED = { eniInfos: [], routeENIs: 0, routeENIIPs: 0 };

/** What people wrote of an ENI that is on no instance any more. */
const asDetached = ({ deviceIndex: _on, assignmentID: _since, ...eni }: NodeEniInfo): object => ({
  ...eni,
  state: 'Detaching',
  addresses: (eni.addresses ?? []).map((address) => ({ ...address, state: 'Releasing' })),
});

/** Edits the status of a node while nobody leads; another leads when this returns. */
async function editLeaderless(
  stage: Stage,
  node: Machine,
  change: (status: NodeEniConfigStatus) => object,
): Promise<void> {
  const cut = stage.partition('ipamd-*');
  stage.killAll();
  await stage.patchNec(node, { status: change(stage.nec(node).status) });
  await stage.seconds(20);
  cut();
  await stage.until('another leads', () => stage.world.leader !== undefined);
}

/** The status says that an ENI is on no instance, or that there is none: the cloud contradicts. */
export const leaderlessEdits: Story = {
  title: 'what somebody wrote while nobody led is undone as soon as the cloud contradicts it',
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node({ cores: 1 })];
    stage.begin();
    const [eni] = stage.enis(first);
    await editLeaderless(stage, first, ({ eniInfos = [] }) => ({ eniInfos: eniInfos.map(asDetached) }));
    await stage.until('it is detached', () => eni?.attachment === undefined);
    stage.expect('the cloud refused its deletion before', stage.sent('DeleteNetworkInterface') > 0);
    const isGone = () => !stage.world.host.model.state.enis.has(eni?.eniId ?? '');
    await stage.until('it is deleted as soon as it can be', isGone, 10_000);
    await stage.until('the node is ready', () => stage.isReady(first));
    const had = stage.supply(second).length;
    await editLeaderless(stage, second, () => EMPTIED);
    await stage.until('the full instance has what it had', () => stage.supply(second).length === had, 120_000);
  },
};

/** Addresses of two ENIs are taken away in the cloud, 45 seconds apart. */
export const twoDifferences: Story = {
  title: 'the repair of one ENI does not make the difference of another one young again',
  world: { flags: ['--ip-min-warm-target=14', '--ip-max-warm-target=14'] },
  tell: async (stage) => {
    const node = await stage.node();
    await stage.minutes(1);
    stage.begin();
    const takeOf = async (at: number): Promise<string> => {
      const [, ip = ''] = [...(stage.enis(node)[at]?.ips.keys() ?? [])];
      stage.expect('the cloud has it', stage.takeInCloud(ip));
      // What people write there makes ipamd look at once.
      await stage.patchNec(node, { status: { describedAt: `2026-01-0${at + 1}T00:00:00Z` } });
      return ip;
    };
    const isListed = (ip: string) => JSON.stringify(stage.nec(node).status.eniInfos).includes(`"${ip}"`);
    const one = await takeOf(0);
    await stage.seconds(45);
    const other = await takeOf(1);
    await stage.until('the first is repaired', () => !isListed(one), 30_000);
    stage.expect('the second is young', isListed(other));
    await stage.until('the second is repaired', () => !isListed(other), 60_000);
  },
};
