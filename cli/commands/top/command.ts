import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni top` */
export const TOP = defineCommand({
  name: 'top',
  summary: 'watch pool, ADD latency, repairs and API budget in a terminal',
  description: `Redraws one page in place: how full the pool and each ENI are, ADDs and DELs a second with their latency over
the last minute, what was repaired, which repairs another program undoes, and how much of the API server's budget is used.

Keys: q ends it, s changes the order of the ENIs, p pauses the page. Needs a terminal; --once does not.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni top', does: 'looks every two seconds' },
    { line: 'tke-eni top --once', does: 'prints one frame, with figures since the agent started' },
  ],
  needs: 'root: the agent’s socket is for root only',
  load: () => import('./run-top.ts'),
});
