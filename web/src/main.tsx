import { render } from 'preact';

import 'uplot/dist/uPlot.min.css';
import './style/base.css';
import './style/timeline.css';
import './style/panes.css';
import { restUntil, useTransport } from './api/client';
import { embeddedReport, ReportTransport } from './api/report';
import { App } from './app';
import { language, setLanguage, t } from './i18n';
import { firstPicture } from './state/first_picture';
import { follow, reportFacts } from './state/store';
import { followHover } from './timeline/hover';
import { followTimeline } from './timeline/data';
import { startRaster } from './timeline/raster_client';
import { followKeyboard } from './ui/keyboard';
import { followTheme } from './ui/theme';

const report = embeddedReport();
if (report) {
  useTransport(new ReportTransport(report, () => t('app.reduced')));
  reportFacts.value = report.facts;
} else {
  restUntil(firstPicture);
  startRaster();
}
followTheme();
setLanguage(language.value);
const begun = follow();
followTimeline();
followHover();
followKeyboard();
const root = document.getElementById('app');
// Most times the first answer comes at once: then it is the first thing drawn.
const soon = new Promise((resolve) => setTimeout(resolve, 150));
void Promise.race([begun, soon]).then(() => root && render(<App />, root));
