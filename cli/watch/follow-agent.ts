import { openOpsClient } from '../agent/ops-client.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';
import { renderWarning } from '../output/render-error.ts';
import { eventKindNumber, findAgentEvents } from './find-agent-event.ts';
import type { Names } from './names.ts';
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
  names: Names,
  print: (event: WatchEvent) => void,
): Promise<void> {
  const { signal, clock, global, stderr } = context;
  const wanted = kinds.flatMap((kind) => eventKindNumber(kind) ?? []);
  let isTold = false;
  const onOpen = () => {
    if (isTold) stderr.write(renderWarning('the agent answers again', stderr.isColored));
    isTold = false;
  };
  while (!signal.aborted) {
    try {
      using client = await openOpsClient(global.socket);
      for await (const event of client.watch(wanted, signal, onOpen)) {
        for (const told of findAgentEvents(event, names)) print(told);
      }
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      if (!isTold) stderr.write(renderWarning(`${error.message}; its events are not told`, stderr.isColored));
      isTold = true;
      if (error.code === 'FORBIDDEN') return;
    }
    await clock.sleep(AGENT_RETRY_MS, signal).catch(() => undefined);
  }
}
