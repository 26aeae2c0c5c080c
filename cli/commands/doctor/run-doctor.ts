import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import { renderWarning } from '../../output/render-error.ts';
import type { DoctorArgs } from './arguments.ts';
import { CHECKS } from './checks.ts';
import { countFindings, decideSelection, evaluateChecks } from './evaluate-checks.ts';
import { readDoctorFacts } from './read-doctor-facts.ts';
import { doctorDocument, renderDoctor } from './render-doctor.ts';

/** Runs `doctor`: checks this node for problems of Pods' networks; changes nothing. @throws UserError */
export async function run(args: DoctorArgs, { stdout, stderr, isRoot, global }: CommandContext): Promise<ExitCode> {
  const selection = decideSelection(CHECKS, args.only, args.skip);
  const folders = { confDir: args['cni-conf-dir'], binDir: args['cni-bin-dir'] };
  const diagnosis = evaluateChecks(selection, await readDoctorFacts({ global }, folders));
  if (args.output === 'json' || args.output === 'yaml') {
    await printDocument(doctorDocument(diagnosis), args.output, stdout);
  } else {
    const { isColored } = stdout;
    stdout.write(renderDoctor(diagnosis, { width: stdout.columns(), isColored, isWide: args.output === 'wide' }));
  }
  if (!isRoot) stderr.write(renderWarning('without root not everything could be looked at', stderr.isColored));
  if (diagnosis.results.every(({ verdict }) => verdict.kind === 'skipped')) return EXIT.failed;
  return countFindings(diagnosis.findings).error > 0 ? EXIT.wrong : EXIT.ok;
}
