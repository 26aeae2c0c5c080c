import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { printDocument } from '../output/print-document.ts';
import { renderWarning } from '../output/render-error.ts';
import type { ExplainArgs } from './arguments.ts';
import { askAgent } from './ask-agent.ts';
import type { Explanation } from './explanation.ts';

/** Explains how packets of a Pod go. @throws CliError USAGE, NOT_FOUND, FORBIDDEN, KERNEL */
export async function run({ subject, to, from, output }: ExplainArgs, context: CommandContext): Promise<ExitCode> {
  const { stdout, stderr } = context;
  const question = { subject, to, from };
  const answered: Explained | undefined = await askAgent(context.global, question);
  const { explanation, warning } = answered ?? (await explainHere(context, question));
  if (output !== 'table') await printDocument(explanation, output, stdout);
  else {
    if (warning !== undefined) stderr.write(renderWarning(warning, stderr.isColored));
    const { renderExplanation } = await import('./render-explanation.ts');
    stdout.write(renderExplanation(explanation, { width: stdout.columns(), isColored: stdout.isColored }));
  }
  const isBroken = explanation.paths.some(({ hops }) => hops.some(({ verdict }) => verdict === 'broken'));
  return isBroken ? EXIT.wrong : EXIT.ok;
}

type Explained = { readonly explanation: Explanation; readonly warning?: string };

/** Reads the kernel in this process. Imported where it is needed: the code takes most of the time of a start. */
async function explainHere(
  context: CommandContext,
  question: Pick<ExplainArgs, 'subject' | 'to' | 'from'>,
): Promise<Explained> {
  const { explainNode } = await import('./explain-node.ts');
  const { explanation, facts } = await explainNode(context, question);
  const { agent } = facts;
  return agent.kind === 'unknown' ? { explanation, warning: `from the kernel alone: ${agent.why}` } : { explanation };
}
