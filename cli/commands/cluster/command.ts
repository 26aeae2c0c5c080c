import { defineCommand } from '../../command/command.ts';
import { OPTIONS, POSITIONALS } from './arguments.ts';

/** `tke-eni cluster` */
export const CLUSTER = defineCommand({
  name: 'cluster',
  summary: 'show nodes, subnets, capacity, ENIs, kept addresses and leaks of the whole cluster',
  description: `Works from anywhere with a kubeconfig: it asks the API server, and with --cloud the cloud, and no node. It changes
nothing. The ClusterRole tke-eni-viewer has the rights that it needs; what may not be read is named, and the rest is shown.

nodes: ENIs, addresses assigned, in use, free and releasing, demand and quota of each node; those with problems first. Free
are addresses that no Pod has: those that cool down after their last Pod are among them. It warns when the server supports
the admission policy agent-own-node-only and an agent without privileged, and one of them is missing. Where ipamd gives nodes
their podCIDRs, it counts the blocks that are used, held for their last node, and free, and names nodes without one.

subnets: how many addresses are taken and free, which nodes use them, and when they run out: by what ipamd publishes, with
--cloud by the cloud. The time needs a measurement: the creation times of the present records of addresses give the earliest
time (records deleted meanwhile are not seen); --sample compares two readings and gives a range.

capacity: how many more Pods and nodes each zone has addresses for, from the free addresses that ipamd publishes. What nodes
still lack goes first. A new node takes an ENI with the warm addresses of a new node, and more with its Pods: FULL ONES are the
nodes that can have as many Pods as their type may. The limits of --type are those of a node of this type, else those that the
size in its name has. The numbers of Pods and nodes exclude each other: both need the same addresses. The answer is no when a
zone, or the blocks of podCIDRs, are not enough for --nodes.

enis: every ENI with its node, state and addresses, and why it is not given back to the cloud, as far as the objects show it;
-o wide has sentences.

kept: what belongs to a Pod's name: claims and EIPs by phase, those that wait or failed with the reason, addresses without a
Pod by node and subnet, whole ENIs in use, spare and kept.

leaks: addresses with two owners, Pods with an address that no NodeENIConfig has, records without a Pod or node, calls and
deletions that hang; with --cloud also ENIs and addresses that only one side knows. It reads twice, and reports only what both
readings have and what is older than --grace.`,
  positionals: POSITIONALS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni cluster', does: 'lists the nodes, those with problems first' },
    { line: 'tke-eni cluster subnets', does: 'shows how many addresses are left, and how long they last' },
    {
      line: 'tke-eni cluster capacity --zone ap-guangzhou-6 --nodes 3 --type S5.LARGE8',
      does: 'says whether three more nodes can have addresses there',
    },
    { line: 'tke-eni cluster kept', does: 'shows which Pods wait for their address or EIP, and why' },
    { line: 'tke-eni cluster leaks --cloud', does: 'finds what is lost or double across cloud, objects and Pods' },
  ],
  wrongMeans:
    'a node has an error, no podCIDR is left for one, a subnet is used up, a zone has not enough addresses for --nodes, a claim failed or waits for longer than --grace, or something leaked',
  needs: 'a kubeconfig with the rights of ClusterRole tke-eni-viewer; no root, no node',
  load: () => import('./run-cluster.ts'),
});
