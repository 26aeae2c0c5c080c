/**
 * Finds the test files of failed titles: AVA puts the path of a file, from the folder that all of a run have in common, before
 * its titles.
 * @param titles As `e2e › soak.long › a title`
 * @param files Paths of the files of the run
 * @returns undefined when some title is of no file, or of several: a failure before the tests of a file, or a run of one file
 */
export function failedFiles(titles: readonly string[], files: readonly string[]): readonly string[] | undefined {
  const found = new Set<string>();
  for (const title of titles) {
    const words = title.split(' › ');
    const matches = words.slice(1).flatMap((_, at) => {
      const end = `/${words.slice(0, at + 1).join('/')}.test.ts`;
      return files.filter((file) => file.endsWith(end));
    });
    const [file] = matches;
    if (file === undefined || matches.length > 1) return undefined;
    found.add(file);
  }
  return [...found];
}
