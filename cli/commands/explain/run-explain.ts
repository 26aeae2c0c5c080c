import type { Explanation, Hop } from '../../../inspection/explain/explanation.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import { renderWarning } from '../../output/render-error.ts';
import { type Connection, parseConnection } from '../lb/select-connection.ts';
import type { ExplainArgs } from './arguments.ts';
import { askAgent } from './ask-agent.ts';

/** Explains how packets of a Pod go. @throws UserError USAGE, NOT_FOUND, FORBIDDEN, KERNEL */
export async function run(args: ExplainArgs, context: CommandContext): Promise<ExitCode> {
  const { subject, to, from, output } = args;
  const { stdout, stderr } = context;
  const connection = parseConnection(subject);
  const { explanation, warning } =
    connection?.port === undefined
      ? await explainPacket(context, { subject, to, from })
      : await followConnection(connection, args, context);
  if (output !== 'table') await printDocument(explanation, output, stdout);
  else {
    if (warning !== undefined) stderr.write(renderWarning(warning, stderr.isColored));
    const { renderExplanation } = await import('./render-explanation.ts');
    stdout.write(renderExplanation(explanation, { width: stdout.columns(), isColored: stdout.isColored }));
  }
  return explanation.paths.some(({ hops }) => hops.some(isWrong)) ? EXIT.wrong : EXIT.ok;
}

/** Reports whether a hop is broken, or may be: a packet may not pass a firewall rule that is not evaluated. */
function isWrong({ verdict, finding }: Hop): boolean {
  return verdict === 'broken' || finding?.id === 'firewall-not-evaluated';
}

type Question = Pick<ExplainArgs, 'subject' | 'to' | 'from'>;
type Explained = { readonly explanation: Explanation; readonly warning?: string };

async function explainPacket(context: CommandContext, question: Question): Promise<Explained> {
  const answered: Explained | undefined = await askAgent(context.global, question);
  return answered ?? (await explainHere(context, question));
}

/** Imported where it is needed: it asks the API server and the cloud. */
async function followConnection(
  connection: Connection,
  args: ExplainArgs,
  context: CommandContext,
): Promise<Explained> {
  const { explainConnection } = await import('./explain-connection.ts');
  return await explainConnection(connection, args, context, (question) => explainPacket(context, question));
}

/** Reads the kernel in this process. Imported where it is needed: the code takes most of the time of a start. */
async function explainHere(context: CommandContext, question: Question): Promise<Explained> {
  const { explainNode } = await import('../../../inspection/explain/explain-node.ts');
  const { nameRefusal } = await import('./name-refusal.ts');
  const ports = { handlers: () => askHandlers(context.global) };
  const { explanation, facts } = await explainNode(context, question, ports).catch(async (error: unknown) => {
    throw await nameRefusal(error, context.global);
  });
  const { agent } = facts;
  return agent.kind === 'unknown' ? { explanation, warning: `from the kernel alone: ${agent.why}` } : { explanation };
}
