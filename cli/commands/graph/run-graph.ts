import { writeFile } from 'node:fs/promises';
import { messageOf } from '../../../runtime/error-text.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openProgress } from '../../output/progress.ts';
import { renderJson } from '../../output/render-json.ts';
import type { GraphArgs } from './arguments.ts';
import { buildGraph } from './build-graph.ts';
import type { Graph, GraphPath } from './graph.ts';
import { DRAWING_SHEET, PAGE_SCRIPT, PAGE_SHEET } from './page/page-sources.inline.ts';
import { readGraphInput } from './read-graph-input.ts';
import { renderHtml } from './render-html.ts';
import { renderSvg } from './render-svg.ts';

/** Draws the node. @throws UserError */
export async function run(args: GraphArgs, context: CommandContext): Promise<ExitCode> {
  const { subject, to, file } = args;
  const format = decideFormat(args.output, file);
  if (to !== undefined && subject === undefined) {
    throw new UserError(
      'USAGE',
      '--to says where a Pod sends to, and no Pod is named',
      'tke-eni graph <pod> --to ADDR',
    );
  }
  const progress = openProgress(context);
  progress.show('looking into the node and its Pods');
  const input = await readGraphInput(context, { subject, to }).finally(() => progress.clear());
  const graph = buildGraph(input.facts, input);
  const text = render(graph, input.named, format, context.stdout.isTerminal);
  if (file === undefined || file === '-') context.stdout.write(text);
  else {
    await write(file, text);
    context.stderr.write(`wrote ${file}\n`);
  }
  return graph.nodes.some(({ state }) => state === 'broken' || state === 'missing') ? EXIT.wrong : EXIT.ok;
}

function render(graph: Graph, named: string | undefined, format: GraphFormat, isTerminal: boolean): string {
  const focus = graph.paths.filter(({ pod }) => pod === named);
  switch (format) {
    case 'html':
      return renderHtml(graph, named, { script: PAGE_SCRIPT, pageSheet: PAGE_SHEET, drawingSheet: DRAWING_SHEET });
    case 'svg':
      return renderSvg(graph, mainPaths(focus), DRAWING_SHEET);
    case 'json':
      return renderJson(graph, isTerminal);
  }
}

/** Selects one path out and one path in, a broken one if there is any: in a picture more lines cannot be distinguished. */
function mainPaths(paths: readonly GraphPath[]): readonly GraphPath[] {
  const isBroken = (path: GraphPath) => path.steps.some(({ verdict }) => verdict === 'broken');
  return (['from-pod', 'to-pod'] as const).flatMap((direction) => {
    const candidates = paths.filter((path) => path.direction === direction);
    return candidates.find(isBroken) ?? candidates[0] ?? [];
  });
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    const reason = messageOf(error);
    throw new UserError(
      'REFUSED',
      `${file} cannot be written: ${reason}`,
      'name a file in a folder that you may write to, or - for standard output: tke-eni graph -o html > node.html',
      {
        cause: error,
      },
    );
  }
}

/** Output formats of `graph`. */
export type GraphFormat = 'svg' | 'html' | 'json';

/** Decides the output format: the requested one, else by the ending of the file, else SVG. */
export function decideFormat(requested: GraphFormat | undefined, file: string | undefined): GraphFormat {
  if (requested !== undefined) return requested;
  const ending = file?.toLowerCase().match(/\.([a-z]+)$/)?.[1];
  switch (ending) {
    case 'json':
      return ending;
    case 'html':
    case 'htm':
      return 'html';
    default:
      return 'svg';
  }
}
