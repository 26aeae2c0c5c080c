import { type ArgsOf, defineCommand } from '../command.ts';
import { OUTPUT_OPTION } from '../pool/output-option.ts';

const OPTIONS = {
  ...OUTPUT_OPTION,
  pod: {
    type: 'string',
    summary: 'only what concerns Pods with this in namespace/name, this address or container id',
    metavar: 'POD',
    completes: 'pod',
  },
  last: { type: 'number', summary: 'as many as this, the newest', metavar: 'COUNT', default: 100 },
  follow: { type: 'boolean', alias: 'f', summary: 'go on with what comes, until Ctrl-C; lines, or JSON lines' },
} as const;
const NONE = {} as const;

/** Is what `events` gets. */
export type EventsArgs = ArgsOf<typeof OPTIONS, typeof NONE>;

/** `tke-eni events` */
export const EVENTS = defineCommand({
  name: 'events',
  summary: 'show the last operations of Pods, and what Kubernetes was told',
  description: `Shows what the agent's flight recorder holds, the oldest first: ADD, DEL, CHECK and repairs of each Pod with how
they ended, how long they took and what they did to the kernel (-o json has every step). The recorder is in memory: it
begins with the agent.

With a kubeconfig also the events of this node and its Pods in Kubernetes that our components and kubelet wrote about
their network.`,
  positionals: NONE,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni events --pod default/web-0', does: 'tells the story of one Pod' },
    { line: 'tke-eni events --follow', does: 'goes on with what the agent does' },
  ],
  needs: 'root: the agent’s socket is for root only',
  load: () => import('./run-events.ts'),
});
