import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { writeWrong } from '../standins/wrong-writers.ts';
import type { Story } from '../story.ts';

/** Somebody misspells a subnet in the ConfigMap; the leader dies, and then nodes and Pods come. */
export const misspelledSubnet: Story = {
  title: 'the last good subnets stay in force, also when another leader reads a ConfigMap that is wrong first',
  tell: async (stage) => {
    const node = await stage.node();
    await stage.seconds(10);
    stage.begin();
    const { admin, config } = stage.world;
    const ref = { namespace: 'kube-system', name: 'tke-eni-ipamd' };
    const write = (data: object) => stage.people(admin.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { data } }));
    await write({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet-nowhere1' });
    await stage.seconds(10);
    stage.killLeader();
    const second = await stage.node();
    await stage.pods(node, 9);
    await stage.pods(second, 9);
    stage.expect(
      'it is said',
      stage.events('SubnetUnknown').some((text) => text.includes('subnet-podsa000, subnet-podsb000 stay in force')),
    );
    await write(config);
    await stage.seconds(40);
    const isWrong = stage.nec(node).status.conditions?.some(({ status }) => status === 'False');
    stage.expect('it is over', isWrong === false);
  },
};

/** Somebody makes a second Node of an instance, and deletes it again. */
export const secondNode: Story = {
  title: 'an instance is of the Node that has it, and another one is told so',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const what = 'a second Node of an instance';
    const takeBack = await writeWrong(stage, node, { what, name: 'wrong-1', choice: 0 });
    await stage.minutes(1);
    await stage.pods(node, 9);
    stage.expect('it is told', stage.events('InstanceTaken').length === 1);
    stage.expect('it has no object', stage.world.objects('nodeeniconfigs').length === 1);
    await takeBack();
    await stage.end(node, 5);
  },
};
