/**
 * Loaded into a program by `--import`, counts which files it runs code of: at SIGUSR2 it writes their paths to the file that
 * `FILES_OF_ADD` names, one a line, and begins again. Only functions that were called count, not what runs as a file is loaded.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { fileURLToPath } from 'node:url';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (error, answer) => {
    if (error !== null) throw error;
    const files = answer.result
      .filter(({ functions }) =>
        functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
      )
      .map(({ url }) => (url.startsWith('file:') ? fileURLToPath(url) : ''))
      .filter((path) => path !== '' && !path.includes('/node_modules/'));
    const path = process.env['FILES_OF_ADD'] ?? '';
    writeFileSync(`${path}.new`, `${files.join('\n')}\n`);
    renameSync(`${path}.new`, path);
  });
});
