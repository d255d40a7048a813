/* How the search of the site ranks: what a user asks about comes before reference, benchmarks and decisions. */
var Scorer = {
  folders: { "get-started": 6, guides: 6, operate: 6, concepts: 5, reference: 0, benchmarks: -2, adr: -4 },
  score: ([page, , , , score]) => score + (Scorer.folders[page.split("/")[0]] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
