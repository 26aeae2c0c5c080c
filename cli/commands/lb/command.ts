import { defineCommand } from '../../command/command.ts';
import { OPTIONS, POSITIONALS } from './arguments.ts';

/** `tke-eni lb` */
export const LB = defineCommand({
  name: 'lb',
  summary:
    'show the load balancers of Services: listeners, targets, health and reasons; --plan: what would change, of Ingresses too',
  description: `Works from anywhere with a kubeconfig and a key of the cloud: it asks the API server and the cloud, and changes
nothing. The ClusterRole tke-eni-viewer has the rights that it needs.

It lists each Service of type LoadBalancer with its load balancer, listeners and targets. Each target has its Pod or Node, its
weight, what the check of the cloud says, whether it gets connections, and why. A target that no Pod and no Node has is marked: what
has its address next gets its packets.

With an address, or ADDRESS:PORT, it follows a connection of a client: the listener that takes it, the targets that it may go to, and the
node on which tke-eni explain goes on to the Pod.

--plan runs the plan of the controller on what is there now, for Services and for Ingresses of its classes, and prints each call with its
reason, in the order in which they are made. It is empty when all is as desired. Ingresses that share the listeners of a load balancer
are one plan. Secrets are not read, as each has a private key: the plan names those whose certificates it cannot compare, and where
they would go. Give the controller's --clusterid, --vpc-id and --load-balancer-class where they are not
found. A target that is to be deregistered is shown at once; the controller waits a minute after weight 0. Pods with addresses of
their node (GlobalRoute) count as reached where their Node says so, as with --routes of the controller.`,
  positionals: POSITIONALS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni lb', does: 'lists all Services with their load balancers and targets' },
    { line: 'tke-eni lb default/web -o wide', does: 'shows one Service in full width' },
    { line: 'tke-eni lb 10.0.200.9:80', does: 'follows a connection to that address' },
    { line: 'tke-eni lb --plan', does: 'prints what the controller would change, and why' },
  ],
  wrongMeans:
    'a Service has no load balancer, a listener has no target that gets connections, or a target is of nothing',
  needs: 'a kubeconfig with the rights of ClusterRole tke-eni-viewer, and a key of the cloud; no root, no node',
  load: () => import('./run-lb.ts'),
});
