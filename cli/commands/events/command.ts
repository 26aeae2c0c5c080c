import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni events` */
export const EVENTS = defineCommand({
  name: 'events',
  summary: 'show the last operations of Pods, and their events in Kubernetes',
  description: `Shows what the agent's flight recorder holds, the oldest first: ADD, DEL, CHECK and repairs of each Pod with how
they ended, how long they took and what they did to the kernel (-o json has every step). Repairs that concern no Pod are
those of "node": what was changed, when, and which process's change made it necessary. The recorder is in memory: it
begins with the agent.

With a kubeconfig also the events of this node and its Pods in Kubernetes that our components and kubelet wrote about
their network.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni events --pod default/web-0', does: 'shows the operations of one Pod' },
    { line: 'tke-eni events --follow', does: 'goes on with what the agent does' },
  ],
  needs: 'root: the agent’s socket is for root only',
  load: () => import('./run-events.ts'),
});
