import { defineCommand } from '../../command/command.ts';
import { OPTIONS, POSITIONALS } from './arguments.ts';

/** `tke-eni explain` */
export const EXPLAIN = defineCommand({
  name: 'explain',
  summary: 'walk the packets of a Pod through this node and name the first broken hop',
  description: `Walks a packet hop by hop: the Pod's address, route and neighbour, its veth pair, the nftables mark, the rule
that matches, the route, forwarding and source checks, the ENI, and what the cloud has assigned. Both directions: from the
Pod to the outside and to another Pod, and to the Pod from the outside and from the node; with --to or --from for that end.

Beside our reading of rules and routes stands the kernel's own answer (RTM_GETROUTE, with and without fibmatch, in the
right namespace, with the mark and interface that the packet has). Where they differ both are shown and the kernel is
believed. No packet is sent and nothing is changed.

The first broken hop is marked, with its cause and cure; hops after it are what would come next. An address that no Pod of
this node has is explained too: what the node would do with packets to it.

A Pod with an ENI of its own sends inside its namespace: there the walk ends at that ENI, for no rule or table of the node leads
its packets. What it sends by its link to the node, to Services and the node itself, is followed to that link.

ADDRESS:PORT with --from follows the connection of a client to a load balancer of a Service: the listener, its targets with weight and
health, and then the packet into the Pod and the answer, where the target is a Pod of this node; otherwise it names the node on
which to ask. For that it asks the API server and the cloud, as tke-eni lb does; nothing else of this command does. Behind a node
port kube-proxy chooses the Pod: it is said which address the Pod sees.`,
  positionals: POSITIONALS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni explain default/web-0', does: 'walks the four usual packets of a Pod' },
    { line: 'tke-eni explain 10.0.1.5 --to 10.0.9.9', does: 'walks a packet to that address, and its answer' },
    { line: 'tke-eni explain web-0 --to 1.1.1.1 --from 10.9.9.9', does: 'shows what becomes of a forged source' },
    {
      line: 'tke-eni explain 10.0.200.9:80 --from 10.0.0.9',
      does: 'follows a connection to a load balancer into the Pod',
    },
    { line: 'tke-eni explain web-0 -o json | jq -r .findings[].id', does: 'lists what is wrong, for programs' },
  ],
  wrongMeans: 'a hop is broken, or a firewall rule before a drop is not evaluated',
  needs:
    'root: to read the journal and nftables, and to look into Pods; for ADDRESS:PORT also a kubeconfig with the rights of ClusterRole tke-eni-viewer, and a key of the cloud',
  load: () => import('./run-explain.ts'),
});
