import { UserError } from '../../../runtime/user-error.ts';
import { openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext } from '../../command/command.ts';
import { renderWarning } from '../../output/render-error.ts';
import { describeAgentEvent, eventKindNumber } from './describe-agent-event.ts';
import type { WatchNames } from './names.ts';
import type { WatchEvent } from './watch-event.ts';

/** Interval between attempts while no agent answers: an upgrade takes seconds. */
const AGENT_RETRY_MS = 2_000;

/**
 * Passes every event of the agent to `print` until the signal. It continues when the agent stops and starts again;
 * standard error reports both. Resolves at once where the socket may not be opened. `kinds`: all when empty.
 */
export async function followAgent(
  context: CommandContext,
  kinds: readonly string[],
  names: WatchNames,
  print: (event: WatchEvent) => void,
): Promise<void> {
  const { signal, clock, global, stderr } = context;
  const kindNumbers = kinds.flatMap((kind) => eventKindNumber(kind) ?? []);
  let isReported = false;
  const onOpen = () => {
    if (isReported) stderr.write(renderWarning('the agent answers again', stderr.isColored));
    isReported = false;
  };
  while (!signal.aborted) {
    try {
      using client = await openOpsClient(global);
      for await (const event of client.watch(kindNumbers, signal, onOpen)) {
        for (const line of describeAgentEvent(event, names)) print(line);
      }
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      if (!isReported) stderr.write(renderWarning(`${error.message}; its events are not shown`, stderr.isColored));
      isReported = true;
      if (error.code === 'FORBIDDEN') return;
    }
    await clock.sleep(AGENT_RETRY_MS, signal).catch(() => undefined);
  }
}
