import { renderChange } from '../../../inspection/judge/change.ts';
import { isDifferent } from '../../../inspection/judge/difference.ts';
import { plainLines } from '../../../runtime/plain-text.ts';
import { paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { renderForeign, renderUnjudged, section, type TextLayout } from '../diff/render-differences.ts';
import type { Repair } from './repair.ts';

/**
 * Renders the result of a repair for people. The changes themselves were printed while they were made.
 * @param isScript prints everything but command lines as comments
 */
export function renderRepair(repair: Repair, isScript: boolean, layout: TextLayout): string {
  const { isDryRun, changes, failed, held, left } = repair;
  const plain = { ...layout, isColored: layout.isColored && !isScript };
  const sections = [
    failed.length === 0
      ? ''
      : section(
          `failed (${failed.length})`,
          failed.map(({ line, error }) => `${line.trimEnd()}: ${error}`),
          plain.isColored,
        ),
    held.length === 0
      ? ''
      : section(
          `another program keeps undoing these, the agent pauses their repair (${held.length})`,
          held,
          plain.isColored,
        ),
    isDryRun || left.changes.length === 0
      ? ''
      : section(`still to repair (${left.changes.length})`, left.changes.map(renderChange), plain.isColored),
    renderForeign(left.differences, plain),
    renderUnjudged(left, plain),
  ].join('');
  const conclusion = paint(summary(repair), isRepaired(repair) ? 'green' : 'yellow', plain.isColored);
  const text = sections === '' ? `${conclusion}\n` : `${sections}\n${conclusion}\n`;
  const lines = isDryRun ? changes.map((line) => `${plainLines(line.trimEnd())}\n`).join('') : '';
  return lines + (isScript ? asComments(text) : text);
}

/** Builds the document for JSON and YAML. */
export function repairDocument(repair: Repair): object {
  const { isDryRun, writer, changes, failed, held, left } = repair;
  return {
    dryRun: isDryRun,
    writer,
    mended: isRepaired(repair),
    changes,
    failed,
    held,
    left: left.differences.map(({ owner: _owner, family: _family, readKey: _key, changes, ...difference }) => ({
      ...difference,
      mend: changes.map(renderChange),
    })),
    unjudged: left.unjudged,
  };
}

function isRepaired({ failed, left }: Repair): boolean {
  return failed.length === 0 && !left.differences.some(isDifferent);
}

function summary(repair: Repair): string {
  const { isDryRun, changes, left, writer } = repair;
  const foreign = left.differences.filter((difference) => difference.changes.length === 0).length;
  const rest = foreign === 0 ? '' : `; ${foreign} not ours, left alone`;
  if (isDryRun)
    return changes.length === 0
      ? `nothing of ours to repair${rest}`
      : `dry run: ${lines(changes)} would be done, nothing was changed${rest}`;
  const who = writer === 'agent' ? ', by the running agent where it is the writer' : '';
  if (isRepaired(repair)) return changes.length === 0 ? 'nothing to repair' : `repaired: ${lines(changes)}${who}`;
  return `not everything is repaired: ${lines(changes)} done${who}${rest}`;
}

function lines({ length }: readonly string[]): string {
  return plural(length, 'change');
}

function asComments(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : `# ${line}`))
    .join('\n');
}
